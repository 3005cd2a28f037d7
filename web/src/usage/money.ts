/** Millionths of a dollar as people write them: cents, or as much as it takes to see something. */
export function dollars(micro: number): string {
  const value = micro / 1_000_000;
  const most = value !== 0 && Math.abs(value) < 0.1 ? 4 : 2;
  return `$${value.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: most })}`;
}

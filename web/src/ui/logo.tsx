export function Logo() {
  return (
    <svg viewBox="0 0 32 32" className="size-7" aria-hidden="true">
      <rect width="32" height="32" rx="9" fill="#0f766e" />
      <path d="M8 16a8 8 0 0 1 13.9-5.4" fill="none" stroke="#fff" strokeWidth="3" strokeLinecap="round" />
      <path
        d="M24 16a8 8 0 0 1-13.9 5.4"
        fill="none"
        stroke="#fff"
        strokeWidth="3"
        strokeLinecap="round"
        opacity=".65"
      />
      <circle cx="16" cy="16" r="2.6" fill="#fff" />
    </svg>
  );
}

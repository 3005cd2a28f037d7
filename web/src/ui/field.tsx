// A labelled field of a form.
import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from "react";

export const INPUT =
  "w-full min-w-0 rounded-lg border border-line bg-ground px-3 py-1.5 text-sm placeholder:text-muted focus-visible:border-accent";

type Labelled = { label: string; hint?: ReactNode };

export function Field({ label, hint, ...rest }: Labelled & InputHTMLAttributes<HTMLInputElement>) {
  const id = useId();
  return (
    <div className="min-w-0 space-y-1">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <input id={id} className={INPUT} aria-describedby={hint ? `${id}-hint` : undefined} {...rest} />
      {hint && (
        <p id={`${id}-hint`} className="text-xs text-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

type Choices = Labelled & SelectHTMLAttributes<HTMLSelectElement> & { choices: readonly (readonly [string, string])[] };

export function Choice({ label, hint, choices, ...rest }: Choices) {
  const id = useId();
  return (
    <div className="min-w-0 space-y-1">
      <label htmlFor={id} className="block text-sm font-medium">
        {label}
      </label>
      <select id={id} className={INPUT} {...rest}>
        {choices.map(([value, said]) => (
          <option key={value} value={value}>
            {said}
          </option>
        ))}
      </select>
      {hint && <p className="text-xs text-muted">{hint}</p>}
    </div>
  );
}

/** What people choose, write, read and copy: the controls that forms and answers have in common. */
import { useState } from "preact/hooks";
import { readNames } from "../../../shared/api/value.ts";

type InputProps = { readonly label: string; readonly value: string; readonly onChange: (value: string) => void };

/** By their values, what people read. */
type ChoiceProps = InputProps & { readonly options: Readonly<Record<string, string>> };

/** Shows also a value that is none of the options. */
export function Choice({ label, value, options, onChange }: ChoiceProps) {
  const shown = Object.hasOwn(options, value) ? options : { [value]: value, ...options };
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {Object.entries(shown).map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Text({ label, value, hint, onChange }: InputProps & { readonly hint: string }) {
  return (
    <label>
      {label}
      <input
        value={value}
        placeholder={hint}
        autoComplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  );
}

type NamesProps = InputProps & { readonly names: readonly string[] };

/** A list of names, as the API has them: with commas between. */
export function Names({ label, value, names, onChange }: NamesProps) {
  const chosen = readNames(value).filter((name) => name !== "");
  const toggle = (name: string, on: boolean) =>
    onChange((on ? [...chosen, name] : chosen.filter((one) => one !== name)).join());
  if (names.length === 0) return null;
  return (
    <details>
      <summary>
        {label}: <span class="quiet">{chosen.length === 0 ? "as by default" : chosen.join(", ")}</span>
      </summary>
      <fieldset class="names">
        <legend class="hidden">{label}</legend>
        {names.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
            />
            {name}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

/** Text that scrolls, also with the keyboard. */
export function Code({ text }: { readonly text: string }) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable with the keyboard
  return <pre tabIndex={0}>{text}</pre>;
}

type ChoicesProps<T> = {
  readonly of: readonly T[];
  readonly chosen: T;
  readonly onChoose: (one: T) => void;
};

export function Choices<T extends string>({ of, chosen, onChoose }: ChoicesProps<T>) {
  return (
    <div class="choices">
      {of.map((one) => (
        <button key={one} type="button" aria-pressed={one === chosen} onClick={() => onChoose(one)}>
          {one}
        </button>
      ))}
    </div>
  );
}

/** Browsers let pages write the clipboard only where they were opened on this machine or by HTTPS. */
export function Copy({ text }: { readonly text: string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("The browser does not let this page copy");
    }
  };
  return (
    <>
      <button type="button" onClick={copy}>
        Copy
      </button>
      <span role="status" class="quiet">
        {said}
      </span>
    </>
  );
}

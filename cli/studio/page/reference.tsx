/** The view of the reference: the app's OpenAPI document in RapiDoc, whose styles need a document of its own. */
import type { ViewProps } from "./data.tsx";

export function Reference({ app }: ViewProps) {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return (
    <>
      <p>
        <a href={`data/openapi?app=${app.key}`} download={`${app.key}.openapi.json`}>
          The OpenAPI document
        </a>{" "}
        <span class="quiet">
          as <code>precast openapi --app {app.key}</code> writes it
        </span>
      </p>
      <iframe title={`Reference of ${app.name}`} src={`reference.html?app=${app.key}&theme=${theme}`} />
    </>
  );
}

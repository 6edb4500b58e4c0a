/** Writes the VCL that Varnish and Fastly have in common. */
import type { EdgeApp } from "./edge.ts";
import type { Headers } from "./headers.ts";

/** The subroutine `precast_app`: it sets the folder of the app whose key was sent. VCL compares case-sensitively. */
export function appRules(apps: readonly EdgeApp[]): string {
  const rules = apps.map(
    ({ key, folder }) => `if (req.http.X-App-Key == "${key}") {\n    set req.http.X-Precast-App = "${folder}";\n  }`,
  );
  return `# The folder of the app. Two X-App-Key headers are joined by a comma, and no app has such a key.
sub precast_app {
  std.collect(req.http.X-App-Key);
  ${rules.join(" else ")}
}`;
}

/** The path of the tree on its static host, with a trailing slash. */
export function treePathOf({ pathname }: URL): string {
  return `${pathname.replace(/\/+$/, "")}/`;
}

/** Statements that set the headers. They use the long strings of VCL, in which nothing is escaped. */
export function setHeaders(object: "resp" | "obj" | "beresp", headers: Headers): string {
  return Object.entries(headers)
    .map(([name, value]) => `    set ${object}.http.${name} = {"${value}"};`)
    .join("\n");
}

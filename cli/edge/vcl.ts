/** What the VCL of Varnish and that of Fastly have in common. */
import type { EdgeApp } from "./edge.ts";
import type { Headers } from "./headers.ts";

/** Sets the folder of the app whose key was sent. VCL compares strings as they are, case and all. */
export function appRules(apps: readonly EdgeApp[]): string {
  const rules = apps.map(
    ({ key, folder }) => `if (req.http.X-App-Key == "${key}") {\n    set req.http.X-Precast-App = "${folder}";\n  }`,
  );
  return `# The folder of the app. Two headers are one with a comma, which is no app's.
sub precast_app {
  std.collect(req.http.X-App-Key);
  ${rules.join(" else ")}
}`;
}

/** The path of the tree at its static host, with the slash at its end. */
export function rootOf({ pathname }: URL): string {
  return `${pathname.replace(/\/+$/, "")}/`;
}

/** In the long strings of VCL nothing is escaped. */
export function setHeaders(object: "resp" | "obj" | "beresp", headers: Headers): string {
  return Object.entries(headers)
    .map(([name, value]) => `    set ${object}.http.${name} = {"${value}"};`)
    .join("\n");
}

/** Writes a Vercel middleware with the mapping core. The tree is deployed beside it as static files. */
import type { Edge, EdgeFile } from "../edge.ts";
import { readCore, readHost, webValues, writeScript } from "../script.ts";

export function vercelFiles(edge: Edge): EdgeFile[] {
  const parts = [readHost("vercel"), readHost("site"), readHost("web"), readCore()];
  return [
    { name: "middleware.js", text: writeScript(HEAD, webValues(edge), parts) },
    { name: "vercel.json", text: settings(edge) },
    {
      name: ".vercelignore",
      text: `# What build and server need to know is not for clients.\n${edge.folder}/.precast\n`,
    },
  ];
}

const HEAD = [
  "The files of a Precast tree from Vercel, everything else from `precast serve`. Made by `precast edge vercel`.",
  "",
  "To put it in place:",
  "  1. This file, vercel.json and .vercelignore belong at the root of what is deployed, beside the folder of the tree.",
  "  2. npx vercel deploy --prod; again after each build.",
  "When an app is added, make it again.",
  "",
  "ETags are the origin's own. Files of the tree can be had at their own paths, too, by whoever guesses an app's key; its",
  ".precast folder cannot. Deployments with protection answer the middleware's own requests with a login: switch it off for",
  "this project. Vercel normalises a URL before a middleware sees it: dot segments are gone, and what they lead to is answered.",
];

function settings({ folder }: Edge): string {
  const value = { $schema: "https://openapi.vercel.sh/vercel.json", buildCommand: "", outputDirectory: folder };
  return `${JSON.stringify(value, null, 2)}\n`;
}

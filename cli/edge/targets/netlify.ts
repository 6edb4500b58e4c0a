/** Writes a Netlify edge function with the mapping core. The tree is the site beside it. */
import type { Edge, EdgeFile } from "../edge.ts";
import { readCore, readHost, webValues, writeScript } from "../script.ts";

export function netlifyFiles(edge: Edge): EdgeFile[] {
  const parts = [readHost("netlify"), readHost("site"), readHost("web"), readCore()];
  return [
    { name: "netlify/edge-functions/precast.js", text: writeScript(HEAD, webValues(edge), parts) },
    { name: "netlify.toml", text: settings(edge) },
  ];
}

const HEAD = [
  "The files of a Precast tree from Netlify, everything else from `precast serve`. Made by `precast edge netlify`.",
  "",
  "To put it in place:",
  "  1. netlify.toml and the folder netlify/ belong at the root of what is deployed, and `publish` there names the tree.",
  "  2. npx netlify deploy --prod; again after each build.",
  "When an app is added, make it again.",
  "",
  "ETags are the origin's own. Files of the tree can be had at their own paths, too, by whoever guesses an app's key; its",
  ".precast folder cannot. Netlify normalises a URL before a function sees it: dot segments are gone, and what they lead to",
  "is answered.",
];

function settings({ folder }: Edge): string {
  return `# Made by \`precast edge netlify\`. Installation steps are at the top of netlify/edge-functions/precast.js.
[build]
  publish = ${JSON.stringify(folder)}

# What build and server need to know is not for clients.
[[redirects]]
  from = "/.precast/*"
  to = "/404"
  status = 404
  force = true
`;
}

/** Writes nginx configurations: a plain one, which maps literal names by patterns, and one with njs and the core. */
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, type Headers, preflightHeaders, unavailableAnswer, withoutContentType } from "../headers.ts";
import { PATTERNS } from "../pattern.ts";
import { foldersOf, readCore, readHost, writeScript } from "../script.ts";
import { comment, sections } from "../text.ts";

export function nginxFiles(edge: Edge): EdgeFile[] {
  return [{ name: "precast.conf", text: sections([comment(PLAIN_HEAD), maps(edge), server(edge)]) }];
}

export function nginxNjsFiles(edge: Edge): EdgeFile[] {
  const script = writeScript(SCRIPT_HEAD, { APPS: foldersOf(edge) }, [readHost("njs"), readCore()]);
  const load = "js_import precast from precast.js;\njs_set $precast_file precast.file;";
  const text = sections([comment(NJS_HEAD), load, server(edge)]);
  return [
    { name: "precast.conf", text },
    { name: "precast.js", text: script },
  ];
}

const INSTALLATION_STEPS = [
  "",
  "To put it in place:",
  "  1. Give `listen` below its port, certificate and server_name.",
  "  2. nginx must be able to read the tree: `root` below.",
];
const ETAGS = [
  "",
  "nginx makes the ETag of a file of its time and size, the origin of its bytes: a client that meets both is sent a body",
  "once more, never a wrong one. A build keeps the times of files that it does not change, and gives another content of the",
  "same size a later second; whoever copies a tree has to keep them, too (rsync -t).",
  "A path that is none (`%zz`, or `..` above the root) nginx refuses itself, with 400.",
];

const PLAIN_HEAD = [
  "The files of a Precast tree from nginx, everything else from `precast serve`. Made by `precast edge nginx`.",
  "",
  "Without a language nginx can name the files of catalog, schemas, pages, sorts, entries, and of filters whose value is",
  "1 to 64 of a-z, 0-9, _ and -. All others the origin answers from its tree, with the same bytes. `precast edge nginx-njs`",
  "names all. Before 1.23 nginx sees the first of two X-App-Key headers alone, and serves that app.",
  ...INSTALLATION_STEPS,
  "  3. Put this file into the http block (on Debian: /etc/nginx/conf.d/), then: nginx -t && nginx -s reload",
  "When an app is added, make it again.",
  ...ETAGS,
];

const NJS_HEAD = [
  "The files of a Precast tree from nginx, everything else from `precast serve`. Made by `precast edge nginx-njs`.",
  ...INSTALLATION_STEPS,
  "  3. Install njs (on Debian: libnginx-mod-http-js). Where that is not enough, the first line of nginx.conf is:",
  "     load_module modules/ngx_http_js_module.so;",
  "  4. Put this file into the http block (on Debian: /etc/nginx/conf.d/) and precast.js beside nginx.conf, then:",
  "     nginx -t && nginx -s reload",
  "When an app is added, make both again.",
  ...ETAGS,
];

const SCRIPT_HEAD = ["Names the file of the tree for precast.conf. Made by `precast edge nginx-njs`."];

/** App keys are patterns, because nginx ignores the case of plain keys: `shop` would get the files of `Shop`. */
function maps({ apps }: Edge): string {
  const known = apps.map(({ key, folder }) => `  "~^${key}$" "${folder}";`);
  const files = PATTERNS.map(({ target, file }) => `  "~^${target}$" "${file}";`);
  return `# The app of a key. As patterns, for nginx ignores the case of plain keys.
map $http_x_app_key $precast_app {
  default "";
${known.join("\n")}
}

# The file of a target as it was sent, below the folder of its app.
map $request_uri $precast_answer {
  default "";
${files.join("\n")}
}

# No file has the name "/-": the origin answers.
map "$request_method $precast_app $precast_answer" $precast_file {
  default "/-";
  "~^(?:GET|HEAD) ([^ ]+) ([^ ]+)$" "/$1/v1/$2";
}`;
}

function server({ origin, out, policy }: Edge): string {
  const headers = fileHeaders(policy);
  const unavailable = unavailableAnswer();
  return `# nginx says 412 where the origin does not mind: what asks so goes there.
map "$http_if_match$http_if_unmodified_since" $precast_asked {
  default "/-";
  "" $precast_file;
}

upstream precast_origin {
  server ${origin.hostname}:${origin.port || (origin.protocol === "https:" ? 443 : 80)};
  keepalive 32;
}

server {
  listen 80;
  root ${quoted(out)};
  # As much as the origin takes.
  large_client_header_buffers 4 32k;

  location / {
    if ($request_method = OPTIONS) {
${addHeaders(preflightHeaders(), "      ")}
      return 204;
    }
    types { }
    default_type ${quoted(headers["Content-Type"] ?? "")};
${addHeaders(headers, "    ")}
    # The origin has neither: a client that knows no date asks by ETag.
    add_header Last-Modified "";
    if_modified_since off;
    max_ranges 0;
    try_files $precast_asked @precast_origin;
  }

  # Without a path, proxy_pass sends the target on as it came.
  location @precast_origin {
    proxy_pass ${origin.protocol}//precast_origin;
    # Of nginx itself, when the origin is away: its own errors come through as they are.
    error_page 502 504 = @precast_away;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host ${quoted(origin.host)};
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
${origin.protocol === "https:" ? `    proxy_ssl_server_name on;\n    proxy_ssl_name ${quoted(origin.hostname)};\n` : ""}  }

  location @precast_away {
    default_type ${quoted(unavailable.headers["Content-Type"] ?? "")};
${addHeaders(unavailable.headers, "    ", " always")}
    return 503 '${unavailable.body}';
  }
}`;
}

/** `always` is nginx's parameter, after a space, that adds headers to error responses too. */
function addHeaders(headers: Headers, indent: string, always = ""): string {
  return withoutContentType(headers)
    .map(([name, value]) => `${indent}add_header ${name} ${quoted(value)}${always};`)
    .join("\n");
}

const REMEDY = "give --out, --cache-control and --cdn-cache-control without.";

/** Throws Error for a text with `$`: nginx expands variables in quotes too, and cannot escape a dollar. */
function quoted(text: string): string {
  if (text.includes("$")) throw new Error(`nginx takes the $ in ${text} for a variable: ${REMEDY}`);
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

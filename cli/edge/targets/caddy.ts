/** Writes a Caddyfile: patterns map requests to files with literal names, the origin answers the rest. */
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, type Headers, preflightHeaders, unavailableAnswer } from "../headers.ts";
import { PATTERNS } from "../pattern.ts";
import { comment, sections } from "../text.ts";

export function caddyFiles(edge: Edge): EdgeFile[] {
  return [{ name: "Caddyfile", text: sections([comment(HEAD), site(edge)]) }];
}

const HEAD = [
  "The files of a Precast tree from Caddy, everything else from `precast serve`. Made by `precast edge caddy`.",
  "",
  "Caddy can name the files of catalog, schemas, pages, sorts, entries, and of filters whose value is 1 to 64 of a-z, 0-9,",
  "_ and -. All others the origin answers from its tree, with the same bytes. Targets are matched as they were sent: Caddy's",
  "own {query} drops what it cannot decode, and would serve the unfiltered list.",
  "",
  "To put it in place:",
  "  1. Write the name of your site in place of `:80`.",
  "  2. Caddy must be able to read the tree: `root` below.",
  "  3. Use it as /etc/caddy/Caddyfile, or import it there, then: caddy validate --config Caddyfile && caddy reload",
  "When an app is added, make it again.",
  "",
  "Caddy makes the ETag of a file of its time and size, the origin of its bytes: a client that meets both is sent a body",
  "once more, never a wrong one. A build keeps the times of files that it does not change, and gives another content of the",
  "same size a later second; whoever copies a tree has to keep them, too (rsync -t).",
  "A path that cannot be decoded (`%zz`) Caddy refuses itself, with 400. What no URI may hold (`{`) it sends on encoded.",
];

function site({ apps, out, origin, policy }: Edge): string {
  refusePattern(out);
  const known = apps.map(({ key, folder }) => `\t\t~^${key}$ ${folder}`);
  const unavailable = unavailableAnswer();
  const files = PATTERNS.map(({ target, file }) => fileRule(target, file));
  return `:80 {
	# The folder of an app. Two headers are one with a comma, which is no app's.
	map {http.request.header.X-App-Key} {precast_app} {
${known.join("\n")}
		default -
	}

	# The file of a target as it was sent. No file has the name "/-": the origin answers.
	map "{http.request.method} {precast_app} {http.request.orig_uri}" {precast_file} {
${files.join("\n")}
		default "/-"
	}

	@precast_preflight method OPTIONS
	handle @precast_preflight {
${setHeaders(preflightHeaders())}
		respond 204
	}

	@precast_file file {
		root ${quoted(out)}
		try_files {precast_file}
	}
	handle @precast_file {
		root * ${quoted(out)}
		rewrite * {precast_file}
		# The origin knows neither ranges nor dates, and no condition but If-None-Match.
		request_header -Range
		request_header -If-Modified-Since
		request_header -If-Unmodified-Since
		request_header -If-Match
		header -Last-Modified
		header -Accept-Ranges
${setHeaders(fileHeaders(policy))}
		file_server
	}

	# The target goes on as it came, and asks for what the client takes alone.
	handle {
		reverse_proxy ${origin.protocol}//${origin.host} {${origin.protocol === "https:" ? "\n\t\t\theader_up Host {upstream_hostport}" : ""}
			transport http {
				compression off
			}
		}
	}

	# The origin is away.
	handle_errors {
		@precast_away expression {err.status_code} >= 502
		handle @precast_away {
${setHeaders(unavailable.headers)}
			respond ${raw(unavailable.body)} 503
		}
	}
}`;
}

/** Throws Error for a path that Caddy's `file` reads as a glob pattern or a placeholder: it would find no file. */
function refusePattern(out: string): void {
  const [sign] = /[*?[\]{}\\]/.exec(out) ?? [];
  if (sign !== undefined) throw new Error(`Caddy takes the ${sign} in ${out} for a pattern: give --out without.`);
}

function fileRule(target: string, file: string): string {
  const path = file.replace(/\$(\d)/g, (_, number) => `\${${Number(number) + 1}}`);
  return `\t\t"~^(?:GET|HEAD) ([shx]-[a-z0-9_-]+) ${target}$" "/\${1}/v1/${path}"`;
}

function setHeaders(headers: Headers): string {
  return Object.entries(headers)
    .map(([name, value]) => `\t\theader ${name} ${quoted(value)}`)
    .join("\n");
}

/** A text in backticks. Caddy leaves the braces of JSON alone: it replaces only placeholders that it knows. */
function raw(text: string): string {
  return `\`${text}\``;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

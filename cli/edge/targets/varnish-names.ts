/** Writes how Varnish names files: by patterns, and other filter values by the hex functions of its blob module. */
import { FILTER_PREFIX, PATTERNS } from "../pattern.ts";

const VALUE = "((?:(?![&#%])[!-~]|%[0-9A-Fa-f]{2}){1,64})";
const TAIL = "[89ab][0-9a-f]";
/** Well-formed UTF-8 in hex, without U+0000 (RFC 3629 section 4). */
const UTF8 = [
  "0[1-9a-f]",
  "[1-7][0-9a-f]",
  `(?:c[2-9a-f]|d[0-9a-f])${TAIL}`,
  `e0[ab][0-9a-f]${TAIL}`,
  `e[1-9a-cef](?:${TAIL}){2}`,
  `ed[89][0-9a-f]${TAIL}`,
  `f0[9ab][0-9a-f](?:${TAIL}){2}`,
  `f[1-3](?:${TAIL}){3}`,
  `f48[0-9a-f](?:${TAIL}){2}`,
].join("|");
const LITERAL = "2d|3[0-9]|5f|6[1-9a-f]|7[0-9a]";

/** The subroutine `precast_file`: it maps a target, as it was sent, to a file relative to the folder of the app. */
export const FILE_SUBROUTINE = `# The file for the request target as it was sent, relative to the folder of the app.
sub precast_file {
  ${PATTERNS.map(({ target, file }) => fileRule(target, file)).join(" else ")} else if (req.url ~ "^${FILTER_PREFIX}${VALUE}$") {
    set req.http.X-Precast-Value = regsuball(regsub(req.url, "^${FILTER_PREFIX}${VALUE}$", "\\3"), "\\+", "%20");
    set req.http.X-Precast-Hex = blob.transcode(decoding=URL, encoding=HEX, encoded=req.http.X-Precast-Value);
    if (req.http.X-Precast-Hex ~ "^(?:${LITERAL})+$") {
      set req.http.X-Precast-Name = "s-" + blob.transcode(decoding=HEX, encoding=IDENTITY, encoded=req.http.X-Precast-Hex);
    } elseif (req.http.X-Precast-Hex ~ "^(?:${UTF8})+$") {
      set req.http.X-Precast-Name = "x-" + req.http.X-Precast-Hex;
    }
    if (req.http.X-Precast-Name) {
      set req.http.X-Precast-File = regsub(req.url, "^${FILTER_PREFIX}.*$", "\\1/filter/\\2/") + req.http.X-Precast-Name + ".json";
    }
  }
}`;

function fileRule(target: string, file: string): string {
  const text = file.replace(/\$(\d)/g, "\\$1");
  return `if (req.url ~ "^${target}$") {\n    set req.http.X-Precast-File = regsub(req.url, "^${target}$", "${text}");\n  }`;
}

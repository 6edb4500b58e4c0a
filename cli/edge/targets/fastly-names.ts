/** Writes how Fastly names files: by patterns, and by its hex and hash functions for values that need no decoding. */
import { FILTER_PREFIX, PATTERNS } from "../pattern.ts";

/** A character that stands for itself in a query value. */
const VALUE = "[A-Za-z0-9_.~!*'(),:;@/?$=-]";

/** The subroutine `precast_file`: it maps a target, as it was sent, to a file relative to the folder of the app. */
export const FILE_SUBROUTINE = `# The file for the request target as it was sent, relative to the folder of the app.
sub precast_file {
  ${PATTERNS.map(({ target, file }) => fileRule(target, file)).join(" else ")} else if (req.url ~ {"^${FILTER_PREFIX}(${VALUE}{1,64})$"}) {
    set req.http.X-Precast-File = re.group.1 "/filter/" re.group.2 "/x-" std.tolower(bin.base64_to_hex(digest.base64(re.group.3))) ".json";
  } else if (req.url ~ {"^${FILTER_PREFIX}(${VALUE}{65,8000})$"}) {
    set req.http.X-Precast-File = re.group.1 "/filter/" re.group.2 "/h-" std.tolower(digest.hash_sha256(re.group.3)) ".json";
  }
}`;

function fileRule(target: string, file: string): string {
  const words = file.split(/(\$\d)/).filter((part) => part !== "");
  const text = words.map((part) => (/^\$\d$/.test(part) ? `re.group.${part.slice(1)}` : `"${part}"`)).join(" ");
  return `if (req.url ~ {"^${target}$"}) {\n    set req.http.X-Precast-File = ${text};\n  }`;
}

/** Cleans the HTML of a source of what could run in a reader's browser, and leads its images to the app's media. */
import sanitizeHtml from "sanitize-html";

export type HtmlRules = {
  /** Removes scripts, styles, forms, and attributes that could run. */
  readonly sanitize: boolean;
  /** The address under which a relative source can be found, or null when it is left as it is. */
  readonly findAddress: (source: string) => string | null;
  /** Called with each kind of what is removed, such as `<script>`. */
  readonly onRemoved: (what: string) => void;
};

/** Elements of articles beyond the library's own, which lacks images. */
const ELEMENTS = [
  ...sanitizeHtml.defaults.allowedTags,
  ...["img", "picture", "source", "video", "audio", "track", "del", "ins", "details", "summary", "input"],
  // Of older HTML, and harmless.
  ...["acronym", "big", "center", "font", "strike", "tt"],
];
const ATTRIBUTES = {
  ...sanitizeHtml.defaults.allowedAttributes,
  "*": ["id", "class", "title", "lang", "dir", "role", "aria-*"],
  a: ["href", "name", "target", "rel"],
  img: ["src", "srcset", "alt", "width", "height", "loading"],
  source: ["src", "srcset", "type", "media", "sizes"],
  video: ["src", "poster", "controls", "width", "height", "loop", "muted"],
  audio: ["src", "controls", "loop"],
  track: ["src", "kind", "srclang", "label"],
  // The boxes of a task list.
  input: [{ name: "type", values: ["checkbox"] }, "checked", "disabled"],
  ...Object.fromEntries(["td", "th"].map((cell) => [cell, ["colspan", "rowspan", "align", "scope"]])),
  ol: ["start", "reversed", "type"],
  time: ["datetime"],
};

export function cleanHtml(html: string, { sanitize, findAddress, onRemoved }: HtmlRules): string {
  const lead = (name: string, attribs: Record<string, string>) => {
    for (const key of ["src", "poster", ...(name === "a" ? ["href"] : [])]) {
      const found = attribs[key] === undefined ? null : findAddress(attribs[key]);
      if (found !== null) attribs[key] = found;
    }
    if (attribs.srcset !== undefined) attribs.srcset = leadSet(attribs.srcset, findAddress);
    return { tagName: name, attribs };
  };
  if (!sanitize)
    return sanitizeHtml(html, {
      allowedTags: false,
      allowedAttributes: false,
      allowVulnerableTags: true,
      allowedSchemesAppliedToAttributes: [],
      transformTags: { "*": lead },
    } as sanitizeHtml.IOptions);
  return sanitizeHtml(html, {
    allowedTags: ELEMENTS,
    allowedAttributes: ATTRIBUTES,
    allowedSchemes: ["http", "https", "mailto", "tel"],
    allowProtocolRelative: true,
    transformTags: {
      "*": (name, attribs) => {
        if (!ELEMENTS.includes(name)) onRemoved(`<${name}>`);
        for (const key of Object.keys(attribs)) if (/^on|^style$/.test(key)) onRemoved(`the attribute ${key}`);
        return lead(name, attribs);
      },
    },
  });
}

/** `a.jpg 1x, b.jpg 2x`. */
function leadSet(set: string, findAddress: HtmlRules["findAddress"]): string {
  const candidates = set.split(/,\s+/).map((candidate) => {
    const [source = "", ...size] = candidate.trim().split(/\s+/);
    return [findAddress(source) ?? source, ...size].join(" ");
  });
  return candidates.join(", ");
}

/** Text as it stands in HTML, also in an attribute. */
export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

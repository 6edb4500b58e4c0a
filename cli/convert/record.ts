/** What converters read from a source: collections, records and their values, before types are inferred from them. */

/** Where something stands in the source, as a person finds it. `file` is relative to the source. */
export type Place = { readonly file: string; readonly line: number | null };

/**
 * A value as the source tells it. A string is a text that may turn out to be a date or one of few values; a cell is text
 * of a format without types (CSV, front matter in quotes is none), which may also be a number or true or false.
 */
export type SourceValue =
  | null
  | boolean
  | number
  | string
  | { readonly kind: "cell"; readonly text: string }
  /** HTML. Relative addresses of images in it are files relative to `folder`; null where there are none. */
  | { readonly kind: "html"; readonly html: string; readonly folder: string | null }
  /** Another record by its key. `collection` is null where the source does not tell it. */
  | { readonly kind: "reference"; readonly collection: string | null; readonly key: string }
  /** A file: its path on this disk, null where the export lacks it. `name` is that of the file, `address` where it was. */
  | { readonly kind: "media"; readonly path: string | null; readonly name: string; readonly address: string | null }
  /** An object that becomes JSON, with what its values become in fields of their own: HTML, ids, names of files. */
  | { readonly kind: "object"; readonly fields: { readonly [name: string]: SourceValue } }
  /** Anything else, kept as it is. */
  | { readonly kind: "json"; readonly value: unknown }
  | readonly SourceValue[];

/** One entry to be. */
export type SourceRecord = {
  readonly kind: "record";
  /** As the source calls it: the slug of the content type is made from it. */
  readonly collection: string;
  /** Unique in its collection, and the same when the source is exported again. Null where only the fields may tell. */
  readonly key: string | null;
  readonly place: Place;
  readonly status: "draft" | "published";
  /** In any spelling of a date; null where the source has none. */
  readonly published: string | null;
  readonly created: string | null;
  readonly updated: string | null;
  /** By the source's names, in the source's order. */
  readonly fields: Readonly<Record<string, SourceValue>>;
};

/** What a source declares of a collection, before or after its records. Whatever it leaves out is inferred. */
export type SourceCollection = {
  readonly kind: "collection";
  readonly collection: string;
  readonly name?: string;
  readonly description?: string;
  readonly fields?: readonly SourceField[];
};

export type SourceField = {
  readonly name: string;
  readonly label?: string;
  readonly required?: boolean;
  readonly type?:
    | "text"
    | "rich_text"
    | "select"
    | "media"
    | "relation"
    | "number"
    | "boolean"
    | "date"
    | "datetime"
    | "json";
  readonly multiple?: boolean;
  /** The collection that a relation leads to. */
  readonly target?: string;
};

/** Something that a bundle cannot hold, or that cannot be read. `what` names it, `why` says what would be right. */
export type Loss = {
  readonly place: Place;
  readonly what: string;
  readonly why: string;
  /** How often, where one loss speaks for many: `place` is the first of them. */
  readonly times?: number;
};

/** What a reader of a format gets beside the path of the source. */
export type ReadContext = {
  /** The language to read where a source has several; null for its default. */
  readonly locale: string | null;
  /** An empty folder to unpack archives into. It is removed when the conversion has ended. */
  readonly scratch: string;
  readonly lose: (loss: Loss) => void;
  /** To be called with the number of bytes of the source that were read since the last call. */
  readonly advance: (bytes: number) => void;
};

/**
 * Reads a source once, from its beginning to its end, in bounded memory. Throws SourceError for what is not in the
 * format at all.
 */
export type SourceReader = (source: string, context: ReadContext) => AsyncIterable<SourceRecord | SourceCollection>;

/** The source cannot be read as what it is said to be: the message has file, line and what would be right. */
export class SourceError extends Error {
  constructor({ file, line }: Place, what: string) {
    super(`${file}${line === null ? "" : `:${line}`}: ${what}`);
  }
}

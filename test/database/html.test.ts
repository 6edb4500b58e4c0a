/** Rich text is searched as the text that a reader sees, however its HTML is written, in both databases alike. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { sql } from "../../shared/sql/query.ts";
import { textOfHtml } from "../support/model-html.ts";
import { wordsOf } from "../support/model-search.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";

const TEXTS = [
  ...[
    "a",
    "word",
    "Ärger",
    "İI",
    "Ελλάδα",

    "Straße",
    "ẞ",
    "日本語",
    "हिन्दी",
    "e\u0301",
    "😀",
    "2026",
    "x²",
    "Жук",
    "שלום",
  ],
  ...[
    " ",
    "\n",
    "\t",
    "\u00a0",
    "\u2003",
    "—",
    "…",
    "-",
    "_",
    "%",
    "'",
    '"',
    "=",
    ">",
    "1 > 0",
    "1 < 2",
    "#",
    ";",
    "\\",
  ],
  ...["&amp;", "&lt;", "&gt;", "&amp;lt;", "&nbsp;", "&eacute;", "&#233;", "&#xE9;", "&#x1F600;", "& ", "&#;", "&;"],
];
const TAGS = [
  ...[
    "<p>",
    "</p>",
    "<P>",
    "<br>",
    "<br/>",
    "<br />",
    "<li>",
    "</li>",
    "<h2>",
    "</h2 >",
    "<div\n>",
    "<td class=x>",
    "<pre>",
  ],
  ...[
    "<b>",
    "</b>",
    "<Strong>",
    "<strong>",
    "<em>",
    "</em>",
    "</a>",
    "</strong>",
    "<i\t>",
    "<h7>",
    "<picture>",
    "<my-tag>",
    "</my-tag>",
    "<!doctype html>",
    "<?xml?>",
  ],
  ...["<p title='a>b'>", '<b title="a>b">', '<a href="x=y>z" title=q>', "<p data-x = '<b>'>", "<b data-y>"],
  ...["<!-- word <p> -->", "<script>var word = '<p>';</script>", "<STYLE>p > b {}</STYLE>", "<!---->"],
];
/** Markup in markup, and markup that does not end. */
const ODD = [
  ...[
    "<!--",
    "-->",
    "<!-->",
    "<!--->",
    "<!-- a --!>",
    "--!>",
    "<!-- - -- a -->",
    "<!",
    "</ a>",
    "</>",
    "<3",
    "<a",
    "<",
  ],
  ...[
    "<script>",
    "</script>",
    "</script ",
    "</scripty>",
    "<script/>",
    "<scripts>",
    "</script b='>'>",
    "<SCRIPT a='>'>",
    "<script><!-- <script> a </script> b",
    "<script><!--<script>--> a",
    "<script><!--> a </script> b --></script>",
    "-</script>",
  ],
  ...["<style>", "</style>", "<style", "</style", "/* <script> */", '"<!--"'],
  ...[
    '<a title="<!-- x">',
    "<a title='<script>'>",
    '<p title="<p x=\'">',
    "<b title=",
    "<style=",
    "<p='x>",
    "<i x = '",
    "&am<b>p;",
    "&<i>lt;</i>",
  ],
  // Where a value begins, and where a name: WHATWG's tokenizer.
  ...[
    '<b ="w1>w2">',
    '<b a=="x>y">',
    '<b a=b="x>y">',
    '<b a="x"="y>z">',
    "<b a/='x>y'>",
    "<b a / = 'x>y'>",
    "<b a = = 'x>y'>",
    "<b a=/'x>y'>",
    '<b a\'b="x>y">',
    "<p a=>",
    "<p = =>",
  ],
];
/** The beginnings and the ends of attributes, in any order. */
const attributes = fc
  .array(fc.constantFrom("a", "=", " ", "'", '"', "/", ">", "b"), { maxLength: 12 })
  .map((pieces) => `<i ${pieces.join("")}>w`);
const html = fc
  .array(
    fc.oneof(
      fc.constantFrom(...TEXTS),
      fc.constantFrom(...TAGS),
      fc.constantFrom(...ODD),
      attributes,
      fc.string({ maxLength: 4 }).map((text) => text.replace(/[<&]/g, "")),
    ),
    {
      maxLength: 14,
    },
  )
  .map((pieces) => pieces.join(""));

/** The first `</` begins no end tag, because the name goes on: the quote in it is text, and ends nothing. */
const ENDS_THAT_ARE_NONE = ["style", "script"].map((name) => `<${name}></${name}<p='x></${name}>shown`);

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  test("the words that the database extracts from HTML are those that the model extracts", async () => {
    const read = async (texts: readonly string[]) => {
      const rows = await store.database.query(
        sql(
          "SELECT precast.words(precast.html_text(html)) FROM unnest($1::text[]) WITH ORDINALITY AS one (html, place) ORDER BY place",
          [texts],
        ),
      );
      return rows.map(([words]) =>
        words
          ?.trim()
          .split(/ +/)
          .filter((word) => word !== ""),
      );
    };
    await fc.assert(
      fc.asyncProperty(fc.array(html, { minLength: 20, maxLength: 20 }), async (texts) => {
        expect(await read(texts)).toEqual(texts.map((text) => wordsOf(textOfHtml(text))));
      }),
      { numRuns: 300, examples: [[ENDS_THAT_ARE_NONE]] },
    );
  });
});

test("HTML tags in upper case are recognised in a database with a Turkish locale", async () => {
  const url = await createDatabase(inject("postgresUrl"), "turkish", "LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C'");
  const database = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 1 });
  onTestFinished(async () => {
    await database.close();
    await dropDatabase(url);
  });
  await migrate(database);
  const html = "<DIV>one</DIV>two<LI>three<SCRIPT>four</SCRIPT><I>five</I><!-- <SCRIPT> -->";
  const rows = await database.query(sql("SELECT precast.words(precast.html_text($1))", [html]));
  expect(rows).toEqual([[" one  two  threefive "]]);
});

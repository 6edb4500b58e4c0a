/** WordPress: what becomes of posts, pages, comments, terms, authors and attachments of a WXR export. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readWordpress } from "../../../cli/convert/formats/wordpress.ts";
import { findRecord, htmlOf, readSource, refer, writeSource } from "../../support/conversion.ts";

const AUTHORS = `<wp:author><wp:author_login>ada</wp:author_login><wp:author_email>ada@example.com</wp:author_email>
<wp:author_display_name><![CDATA[Ada &amp; Co]]></wp:author_display_name></wp:author>`;
const TERMS = `<wp:category><wp:category_nicename>news</wp:category_nicename><wp:category_parent></wp:category_parent>
<wp:cat_name><![CDATA[News]]></wp:cat_name></wp:category>
<wp:category><wp:category_nicename>local</wp:category_nicename><wp:category_parent>news</wp:category_parent>
<wp:cat_name><![CDATA[Local &amp; near]]></wp:cat_name></wp:category>
<wp:tag><wp:tag_slug>%c3%a9t%c3%a9</wp:tag_slug><wp:tag_name>Été</wp:tag_name></wp:tag>
<wp:term><wp:term_taxonomy>genre</wp:term_taxonomy><wp:term_slug>jazz</wp:term_slug><wp:term_name>Jazz</wp:term_name></wp:term>`;

type Item = { id: number; type?: string; status?: string; content?: string; more?: string };

function makeItem({ id, type = "post", status = "publish", content = "", more = "" }: Item): string {
  return `<item><title><![CDATA[Item &amp; ${id}]]></title><link>https://blog.example.com/${id}</link><dc:creator>ada</dc:creator>
<content:encoded><![CDATA[${content}]]></content:encoded><excerpt:encoded><![CDATA[]]></excerpt:encoded>
<wp:post_id>${id}</wp:post_id><wp:post_name>item-${id}</wp:post_name><wp:post_type>${type}</wp:post_type>
<wp:status>${status}</wp:status>${more}</item>`;
}

function makeExport(inside: string, site = "https://blog.example.com"): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="c" xmlns:excerpt="e" xmlns:dc="d" xmlns:wp="w"><channel>
<wp:wxr_version>1.2</wp:wxr_version><wp:base_blog_url>${site}</wp:base_blog_url>
${inside}
</channel></rss>`;
}

async function convert(...items: Item[]) {
  const inside = [AUTHORS, TERMS, ...items.map(makeItem)].join("\n");
  return await readSource(readWordpress, join(writeSource({ "site.xml": makeExport(inside) }), "site.xml"));
}

describe("a post", () => {
  test("keeps its slug, dates, author, terms, image and custom fields", async () => {
    const conversion = await convert(
      {
        id: 7,
        content: "Hello",
        more: `<wp:post_date_gmt>2024-05-01 10:20:30</wp:post_date_gmt><wp:is_sticky>1</wp:is_sticky>
<wp:post_modified_gmt>2024-05-02 00:00:00</wp:post_modified_gmt>
<category domain="category" nicename="local">Local</category><category domain="category" nicename="news">News</category>
<category domain="post_tag" nicename="%c3%a9t%c3%a9">Été</category><category domain="genre" nicename="jazz">Jazz</category>
<category domain="post_format" nicename="post-format-aside">Aside</category>
<wp:postmeta><wp:meta_key>_thumbnail_id</wp:meta_key><wp:meta_value>9</wp:meta_value></wp:postmeta>
<wp:postmeta><wp:meta_key>rating</wp:meta_key><wp:meta_value>4.5</wp:meta_value></wp:postmeta>
<wp:postmeta><wp:meta_key>title</wp:meta_key><wp:meta_value>For robots</wp:meta_value></wp:postmeta>
<wp:postmeta><wp:meta_key>_price</wp:meta_key><wp:meta_value>12</wp:meta_value></wp:postmeta>`,
      },
      {
        id: 9,
        type: "attachment",
        status: "inherit",
        more: `<wp:post_parent>7</wp:post_parent>
<wp:attachment_url>https://blog.example.com/uploads/2024/a%20b.jpg</wp:attachment_url>
<wp:postmeta><wp:meta_key>_wp_attachment_image_alt</wp:meta_key><wp:meta_value>A bee</wp:meta_value></wp:postmeta>`,
      },
    );
    const image = {
      kind: "media",
      path: null,
      name: "a b.jpg",
      address: "https://blog.example.com/uploads/2024/a%20b.jpg",
    };
    expect(findRecord(conversion, "posts", "7")).toMatchObject({
      status: "published",
      published: "2024-05-01T10:20:30Z",
      updated: "2024-05-02T00:00:00Z",
      place: { file: "site.xml", line: 12 },
      fields: {
        title: "Item & 7",
        slug: "item-7",
        content: { kind: "html", html: "<p>Hello</p>" },
        excerpt: null,
        author: refer("authors", "ada"),
        categories: [refer("categories", "local"), refer("categories", "news")],
        tags: [refer("tags", "%c3%a9t%c3%a9")],
        genre: [refer("genre", "jazz")],
        format: "aside",
        sticky: true,
        featured_image: image,
        rating: { kind: "cell", text: "4.5" },
        custom_title: { kind: "cell", text: "For robots" },
        link: "https://blog.example.com/7",
      },
    });
    const attachment = findRecord(conversion, "attachments", "9");
    expect(attachment.status).toBe("published");
    expect(attachment.fields).toMatchObject({ file: image, alt: "A bee", post: refer("posts", "7") });
    expect(conversion.losses).toEqual([
      "site.xml:4 e-mail addresses of authors (1): are personal, and everything here is public",
      "site.xml:23 private field _price (1): a plugin keeps it for itself: make it a custom field to carry it",
    ]);
  });

  test.each([
    ["publish", "published"],
    ["draft", "draft"],
    ["pending", "draft"],
    ["private", "draft"],
    ["future", "draft"],
  ])("with status %s is %s", async (status, expected) => {
    const dates =
      "<wp:post_date>2030-01-01 00:00:00</wp:post_date><wp:post_date_gmt>0000-00-00 00:00:00</wp:post_date_gmt>";
    const record = findRecord(await convert({ id: 1, status, more: dates }), "posts", "1");
    expect(record.status).toBe(expected);
    expect(record.created).toBe("2030-01-01T00:00:00Z");
    expect(record.published).toBe(expected === "published" ? record.created : null);
  });

  test("with a password is never published, and waste and menus are left out: both are said", async () => {
    const { records, losses } = await convert(
      { id: 1, more: "<wp:post_password>secret</wp:post_password>" },
      { id: 2, status: "trash" },
      { id: 3, type: "nav_menu_item" },
      { id: 4, type: "nav_menu_item" },
    );
    expect(records.filter(({ collection }) => collection === "posts").map(({ key, status }) => [key, status])).toEqual([
      ["1", "draft"],
    ]);
    expect(losses.slice(1)).toEqual([
      "site.xml:12 passwords of posts (1): nothing here asks for a password: such a post becomes a draft",
      "site.xml:16 items with status trash (1): are menus, looks, settings or waste rather than content: left out",
      "site.xml:20 items of type nav_menu_item (2): are menus, looks, settings or waste rather than content: left out",
    ]);
  });
});

describe("text", () => {
  test.each([
    ["one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>"],
    ["<h2>Top</h2>\nbelow", "<h2>Top</h2>\n<p>below</p>"],
    ["<ul>\n<li>a\n\nb</li>\n</ul>", "<ul><li>a<br>\n<br>\nb</li>\n</ul>"],
    ["<blockquote>wise\n\nwords</blockquote>", "<blockquote><p>wise</p>\n<p>words</p>\n</blockquote>"],
    ["<div>alone</div>", "<div>alone</div>"],
    ["a\n<pre>x\n\ny</pre>\nb<!--more-->", "<p>a</p>\n<pre>x\n\ny</pre>\n<p>b</p>"],
    ['a <img\nsrc="a.png"><br />\nb', '<p>a <img\nsrc="a.png"><br />\nb</p>'],
    [
      '[caption id="1" width="9"]<img src="a.png"> A bee[/caption]',
      '<figure><img src="a.png"><figcaption>A bee</figcaption>\n</figure>',
    ],
    ["<!-- wp:paragraph -->\n<p>One\ntwo</p>\n<!-- /wp:paragraph -->", "<p>One\ntwo</p>"],
    ['<!-- wp:cover {"a":{"b":">"}} -->\n<div>x</div>\n<!-- /wp:cover -->', "<div>x</div>"],
  ])("%j becomes what WordPress shows", async (content, html) => {
    expect(htmlOf(findRecord(await convert({ id: 1, content }), "posts", "1").fields.content)).toBe(html);
  });

  test("that only a running WordPress can show is said, by its kind", async () => {
    const content = '[gallery] [sic] [form id="3"] [form id="4"] [b]bold[/b]<!-- wp:latest-posts {"x":1} /-->';
    const { losses } = await convert({ id: 1, content });
    expect(losses.slice(1).map((loss) => loss.replace(/: .*/, ""))).toEqual([
      "site.xml:12 block latest-posts (1)",
      "site.xml:12 shortcode [gallery] (1)",
      "site.xml:12 shortcode [form] (2)",
      "site.xml:12 shortcode [b] (1)",
    ]);
  });
});

test("comments lead to what they are about and to what they answer, without addresses", async () => {
  const comment = (id: number, parent: number, approved: string) =>
    `<wp:comment><wp:comment_id>${id}</wp:comment_id>
<wp:comment_author>Bo</wp:comment_author><wp:comment_author_email>bo@example.com</wp:comment_author_email>
<wp:comment_date_gmt>2024-06-01 00:00:0${id}</wp:comment_date_gmt><wp:comment_content>1 < 2</wp:comment_content>
<wp:comment_approved>${approved}</wp:comment_approved><wp:comment_parent>${parent}</wp:comment_parent></wp:comment>`.replace(
      "1 < 2",
      "1 &lt; 2",
    );
  const conversion = await convert(
    { id: 1, more: comment(1, 0, "1") + comment(2, 1, "0") + comment(3, 0, "spam") },
    { id: 2, type: "page", more: comment(4, 0, "1") },
  );
  const comments = conversion.records.filter(({ collection }) => collection === "comments");
  expect(comments.map(({ key, status }) => [key, status])).toEqual([
    ["1", "published"],
    ["2", "draft"],
    ["4", "published"],
  ]);
  expect(comments[0]?.fields).toMatchObject({ post: refer("posts", "1"), parent: null, author: "Bo", type: "comment" });
  expect(comments[0]?.published).toBe("2024-06-01T00:00:01Z");
  expect(comments[1]?.fields).toMatchObject({ parent: refer("comments", "1") });
  expect(comments[2]?.fields).toMatchObject({ page: refer("pages", "2") });
  expect(conversion.losses.slice(1).map((loss) => loss.replace(/: .*/, ""))).toEqual([
    "site.xml:15 e-mail addresses of commenters (3)",
    "site.xml:21 comments with status spam (1)",
  ]);
  expect(JSON.stringify(conversion.records)).not.toContain("bo@example.com");
});

test("pages know their parents, terms theirs, and any type and taxonomy of the site is carried", async () => {
  const conversion = await convert(
    { id: 1, type: "page", more: "<wp:menu_order>3</wp:menu_order>" },
    { id: 2, type: "page", more: "<wp:post_parent>1</wp:post_parent>" },
    { id: 3, type: "recipe", more: "<wp:post_parent>99</wp:post_parent>" },
  );
  expect(findRecord(conversion, "pages", "1").fields).toMatchObject({ menu_order: 3 });
  expect(findRecord(conversion, "pages", "2").fields).toMatchObject({ parent: refer("pages", "1") });
  expect(findRecord(conversion, "recipe", "3").fields).not.toHaveProperty("parent");
  expect(findRecord(conversion, "categories", "local").fields).toMatchObject({
    name: "Local & near",
    slug: "local",
    parent: refer("categories", "news"),
  });
  expect(findRecord(conversion, "tags", "%c3%a9t%c3%a9").fields).toMatchObject({ name: "Été", slug: "été" });
  expect(findRecord(conversion, "genre", "jazz").fields).toMatchObject({ name: "Jazz" });
  expect(findRecord(conversion, "authors", "ada").fields).toMatchObject({ name: "Ada & Co", slug: "ada" });
  expect(conversion.losses[1]).toMatch(/^site\.xml:20 parents that the export lacks \(1\)/);
});

describe("several files", () => {
  test("are one site: what one of them lacks is in another, and nothing is there twice", async () => {
    const thumbnail =
      "<wp:postmeta><wp:meta_key>_thumbnail_id</wp:meta_key><wp:meta_value>9</wp:meta_value></wp:postmeta>";
    const source = writeSource({
      "1.xml": makeExport(
        makeItem({ id: 1, more: `${thumbnail}<category domain="category" nicename="local">Local</category>` }),
      ),
      "2.xml": makeExport(
        AUTHORS +
          TERMS +
          makeItem({ id: 1 }) +
          makeItem({ id: 9, type: "attachment", more: "<wp:attachment_url>https://x/y.png</wp:attachment_url>" }),
      ),
    });
    const conversion = await readSource(readWordpress, source);
    expect(findRecord(conversion, "posts", "1").fields.featured_image).toMatchObject({ name: "y.png" });
    expect(findRecord(conversion, "categories", "local").fields.parent).toEqual(refer("categories", "news"));
    expect(findRecord(conversion, "authors", "ada").fields.name).toBe("Ada & Co");
    expect(conversion.losses.join()).toContain("2.xml:");
    expect(conversion.losses.join()).toContain("items that have the id of one before (1)");
  });

  test("of two sites are an error", async () => {
    const source = writeSource({ "1.xml": makeExport(""), "2.xml": makeExport("", "https://other.example.com") });
    await expect(readSource(readWordpress, source)).rejects.toThrow(/^2\.xml:3: is of the site https:\/\/other/);
  });
});

test("a large file is read in pieces, whatever they cut, and its bytes are counted", async () => {
  const content = "ä€😀".repeat(40_000);
  const text = makeExport(`${AUTHORS}${makeItem({ id: 1, content })}${makeItem({ id: 2, content: `a\u0008b` })}`);
  const file = join(writeSource({ "site.xml": text }), "site.xml");
  const conversion = await readSource(readWordpress, file);
  expect(htmlOf(findRecord(conversion, "posts", "1").fields.content)).toBe(`<p>${content}</p>`);
  expect(htmlOf(findRecord(conversion, "posts", "2").fields.content)).toBe("<p>ab</p>");
  expect(conversion.bytes).toBe(statSync(file).size);
});

test.each([
  ["broken XML", makeExport("<item><title>a</item>"), /^site\.xml:4: is no well-formed XML \(unexpected close tag\)/],
  [
    "a file that was cut off",
    makeExport("<item>\n<title>a").slice(0, -20),
    /^site\.xml:5: is no well-formed XML \(unclosed tag: item\)/,
  ],
  [
    "another feed",
    '<rss version="2.0"><channel><title>x</title></channel></rss>',
    /^site\.xml: is no export of WordPress/,
  ],
  ["other bytes", Buffer.from([0x3c, 0x61, 0x3e, 0xff]), /^site\.xml:1: is not valid UTF-8/],
])("%s is an error that says where", async (_what, text, message) => {
  await expect(readSource(readWordpress, writeSource({ "site.xml": text }))).rejects.toThrow(message);
});

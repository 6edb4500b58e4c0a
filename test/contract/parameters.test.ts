/**
 * Parameters: how a query string is read, its limits, and which error is reported (shared/contract.md section 3).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { LIBRARY_KEY, libraryId } from "../support/library.ts";
import { ask, askRaw, encoded, expectError, openSites, SITES } from "../support/sites.ts";

openSites(SITES);

describe.each(SITES)("reading parameters on %s", (site) => {
  const EQUAL: [string, string, string][] = [
    ["brackets may be encoded", "/works?filter%5Btitle%5D=apple", "/works?filter[title]=apple"],
    ["brackets may be encoded in lower case", "/works?filter%5bprice%5d%5bgt%5d=9", "/works?filter[price][gt]=9"],
    ["a plus is read as a space", "/works?filter[cover]=T20+final.png", "/works?filter[cover]=T20%20final.png"],
    ["parameter names are percent-decoded", "/works?p%61ge=2&%70er_page=2", "/works?page=2&per_page=2"],
    ["the last of a repeated parameter wins", "/works?page=3&page=2", "/works?page=2"],
    ["the last of a repeated filter wins", "/works?filter[title]=x&filter[title]=apple", "/works?filter[title]=apple"],
    [
      "the last of a repeated operator wins",
      "/works?filter[price][gt]=x&filter[price][gt]=9",
      "/works?filter[price][gt]=9",
    ],
    ["an invalid value is ignored when a later one replaces it", "/works?page=0&page=2", "/works?page=2"],
    ["a filter with an empty value counts as not sent", "/works?filter[title]=", "/works"],
    ["an empty filter on an unknown field counts as not sent", "/works?filter[nope]=&filter=&filter[]=", "/works"],
    ["an empty filter with an operator counts as not sent", "/works?filter[price][gt]=&filter[price][zz]=", "/works"],
    ["empty parameters count as not sent", "/works?sort=&page=&per_page=&fields=", "/works"],
    ["parameters without a value count as not sent", "/works?sort&page&per_page&fields&filter[title]", "/works"],
    ["an empty value does not replace an earlier one", "/works?page=2&page=", "/works?page=2"],
    [
      "an empty filter does not replace an earlier one",
      "/works?filter[title]=apple&filter[title]=",
      "/works?filter[title]=apple",
    ],
    ["an empty populate counts as not sent", `/works/${libraryId(1)}?populate=`, `/works/${libraryId(1)}`],
    ["other parameters are ignored", "/works?utm_source=x&q=zz&populate=author_id", "/works"],
    ["the bracket form of fields is ignored", "/works?fields[]=title", "/works"],
    ["the bracket form of sort is ignored", "/works?sort[]=nope&page[]=0", "/works"],
    ["names are case-sensitive", "/works?Sort=nope&PAGE=0&Filter[nope]=x", "/works"],
    ["filterx is not a filter", "/works?filterx=1&filters[title]=apple&xfilter[a]=b", "/works"],
    ["a space beside a name makes it an unknown parameter", "/works?+page=0&filter+[nope]=x", "/works"],
    [
      "an entry ignores the parameters of lists and searches",
      `/works/${libraryId(1)}?fields=zz&filter[nope]=x&sort=nope&page=0&q=x`,
      `/works/${libraryId(1)}`,
    ],
    ["the catalog ignores parameters", "/_schemas?filter[nope]=x&page=0&sort=nope", "/_schemas"],
    ["a schema ignores parameters", "/_schemas/works?fields=slug&populate=x&per_page=0", "/_schemas/works"],
    ["a search ignores populate", "/works/search?q=orchard&populate=author_id", "/works/search?q=orchard"],
    ["a like filter is dropped", "/works?filter[title][like]=apple", "/works"],
    ["a like filter on an unknown field is dropped", "/works?filter[nope][like]=x", "/works"],
    [
      "a like filter beside another filter is dropped",
      "/works?filter[title][like]=x&filter[title]=apple",
      "/works?filter[title]=apple",
    ],
    [
      "a like filter in a search is dropped",
      "/works/search?q=orchard&filter[title][like]=x",
      "/works/search?q=orchard",
    ],
    ["the operator eq is the same as no operator", "/works?filter[title][eq]=apple", "/works?filter[title]=apple"],
    [
      "a filter with eq replaces an earlier one without",
      "/works?filter[title]=x&filter[title][eq]=apple",
      "/works?filter[title]=apple",
    ],
    [
      "a filter without eq replaces an earlier one with eq",
      "/works?filter[title][eq]=x&filter[title]=apple",
      "/works?filter[title]=apple",
    ],
    ["leading zeros of a page are ignored", "/works?page=002", "/works?page=2"],
    ["leading zeros of a page size are ignored", "/works?per_page=02", "/works?per_page=2"],
    ["extra ampersands are ignored", "/works?&&page=2&", "/works?page=2"],
    ["a question mark in a value belongs to the value", "/works?filter[title]=a?b", "/works?filter[title]=a%3Fb"],
    [
      "an address in a value belongs to the value",
      "/works?filter[title]=applehttp://x.example",
      "/works?filter[title]=apple%68ttp://x.example",
    ],
  ];

  test.each(EQUAL)("%s: %s is answered like %s", async (_, target, same) => {
    const [got, expected] = await Promise.all([ask(site, target), ask(site, same)]);
    expect(expected.status).toBe(200);
    expect([got.status, got.text]).toEqual([200, expected.text]);
    expect(got.headers["x-request-counted"]).toBe(expected.headers["x-request-counted"]);
    expect(got.headers["cache-control"]).toBe(expected.headers["cache-control"]);
  });

  test.each([
    ["filter=x", "filter"],
    ["filter[]=x", "filter[]"],
    ["filter[nope]=x", "filter[nope]"],
    ["filter[slug]=apple-one", "filter[slug]"],
    ["filter[body]=x", "filter[body]"],
    ["filter[updated_at]=2026-02-01", "filter[updated_at]"],
    ["filter[id]=x", "filter[id]"],
    ["filter[cover_url]=x", "filter[cover_url]"],
    ["filter[Title]=x", "filter[Title]"],
    ["filter[a=x", "filter[a"],
    ["filter[a]b=x", "filter[a]b"],
    ["filter[title]b=x", "filter[title]b"],
    ["filter[title=x", "filter[title"],
    ["filter[constructor]=x", "filter[constructor]"],
    ["filter[__proto__]=x", "filter[__proto__]"],
    ["filter[nope][gt]=1", "filter[nope][gt]"],
    ["filter[+title]=x", "filter[ title]"],
    ["filter[title][zz]=1&filter[nope]=1", "filter[nope]"],
    ["filter[price][gt]=x&filter[nope]=1", "filter[nope]"],
    ["filter[b0]=1&filter[a0]=1", "filter[b0]"],
  ])("%s: INVALID_FILTER", async (query, parameter) => {
    await expectError(site, `/works?${query}`, 400, "INVALID_FILTER", parameter);
    await expectError(site, `/works/search?q=orchard&${query}`, 400, "INVALID_FILTER", parameter);
  });

  test.each([
    ["filter[title][zz]=x", "filter[title][zz]"],
    ["filter[title][z%0Az]=x", "filter[title][z\nz]"],
    ["filter[title][EQ]=x", "filter[title][EQ]"],
    ["filter[title][LIKE]=x", "filter[title][LIKE]"],
    ["filter[title][]=x", "filter[title][]"],
    ["filter[title][eq][x]=y", "filter[title][eq][x]"],
    ["filter[title][like][x]=y", "filter[title][like][x]"],
    ["filter[title][not]=y", "filter[title][not]"],
    ["filter[title][constructor]=y", "filter[title][constructor]"],
    ["filter[price][gt]=x&filter[title][zz]=1", "filter[title][zz]"],
    ["filter[title][zz]=1&filter[price][yy]=1", "filter[title][zz]"],
  ])("%s: INVALID_OPERATOR", async (query, parameter) => {
    await expectError(site, `/works?${query}`, 400, "INVALID_OPERATOR", parameter);
  });

  test("of two values that cannot be compared, the error names the first", () =>
    expectError(site, "/works?filter[day][gt]=x&filter[price][gt]=x", 400, "INVALID_FILTER_VALUE", "filter[day][gt]"));

  const TEN = "title category genre cover gallery aliases author_id related price in_print".split(" ");
  const filters = (names: string[], operator = "") => names.map((name) => `filter[${name}]${operator}=1`).join("&");

  test("10 filter fields are allowed", async () => {
    expect((await ask(site, `/works?${filters(TEN)}`)).status).toBe(200);
  });

  test("two operators on one field count as one filter field", async () => {
    expect((await ask(site, `/works?${filters(TEN)}&${filters(TEN, "[neq]")}`)).status).toBe(200);
  });

  test("like and empty filters do not count towards 10", async () => {
    const more = "filter[day][like]=x&filter[starts_at]=&filter[nope][like]=x";
    expect((await ask(site, `/works?${filters(TEN)}&${more}`)).status).toBe(200);
  });

  test.each([
    `${filters([...TEN, "day"])}`,
    filters("a b c d e f g h i j k".split(" ")),
    `${filters(TEN)}&filter[day][zz]=x`,
    `${filters(TEN)}&filter[day][gt]=x`,
  ])("11 filter fields are too many, whatever else is wrong: %s", async (query) => {
    for (const target of [`/works?${query}`, `/works/search?q=orchard&${query}`]) {
      const got = await ask(site, target);
      expect([got.status, got.json.error.code]).toEqual([400, "TOO_MANY_FILTERS"]);
      expect(got.json.error.message).toContain("10");
    }
  });

  test.each(["filter", "filter[]", "filter[a", "filter[a]b"])("%s names no field, so it is no eleventh", (name) =>
    expectError(site, `/works?${filters(TEN)}&${name}=x`, 400, "INVALID_FILTER", name),
  );

  test("10 unknown filter fields are not too many", () =>
    expectError(site, `/works?${filters("a b c d e f g h i j".split(" "))}`, 400, "INVALID_FILTER", "filter[a]"));

  test.each([
    "nope",
    "slug",
    "body",
    "category",
    "author_id",
    "id",
    "-",
    "--title",
    "title,price",
    "Title",
    "+title",
    "-%20title",
  ])("sort=%s: INVALID_SORT", async (sort) => {
    await expectError(site, `/works?sort=${sort}`, 400, "INVALID_SORT", "sort");
    await expectError(site, `/works/search?q=orchard&sort=${sort}`, 400, "INVALID_SORT", "sort");
  });

  test.each([100, 101])("a sort of %i characters that names no field: INVALID_SORT", (length) =>
    expectError(site, `/works?sort=${"a".repeat(length)}`, 400, "INVALID_SORT", "sort"),
  );

  test.each(["0", "00", "-1", "1.0", "1e1", "abc", "%2B1", "+1", "1+", "１", "0x1", "1,2"])(
    "page=%s: INVALID_PAGE",
    async (page) => {
      await expectError(site, `/works?page=${page}`, 400, "INVALID_PAGE", "page");
      await expectError(site, `/works/search?q=orchard&page=${page}`, 400, "INVALID_PAGE", "page");
    },
  );

  test.each(["7", "1000000", "9007199254740993", "1000000000000000000000000000000"])(
    "page %s is beyond the last: no entries, and a correct meta",
    async (page) => {
      const list = await ask(site, `/works?page=${page}`);
      const meta = `"current_page":${page},"per_page":20,"total":6,"last_page":1`;
      expect([list.status, list.text]).toEqual([200, `{"data":[],"meta":{${meta}}}`]);
      const search = await ask(site, `/works/search?q=orchard&page=${page}`);
      const found = `"current_page":${page},"per_page":20,"total":1,"last_page":1,"query":"orchard"`;
      expect([search.status, search.text]).toEqual([200, `{"data":[],"meta":{${found}}}`]);
      const counted = await ask(site, `/works?filter[price][gt]=9&per_page=1&page=${page}`);
      expect(counted.text).toBe(`{"data":[],"meta":{"current_page":${page},"per_page":1,"total":2,"last_page":2}}`);
    },
  );

  test.each(["0", "101", "-1", "2.0", "ten", "1000000000000000000000", "+5", "%2B5"])(
    "per_page=%s: INVALID_PER_PAGE",
    async (size) => {
      await expectError(site, `/works?per_page=${size}`, 400, "INVALID_PER_PAGE", "per_page");
      await expectError(site, `/works/search?q=orchard&per_page=${size}`, 400, "INVALID_PER_PAGE", "per_page");
    },
  );

  test.each([1, 100])("per_page=%i is allowed", async (size) => {
    const { meta } = (await ask(site, `/authors?per_page=${size}`)).json;
    expect(meta).toEqual({ current_page: 1, per_page: size, total: 5, last_page: size === 1 ? 5 : 1 });
  });

  test.each([
    ["letters", "x", 500],
    ["emoji", "😀", 500],
  ])("fields and populate of 500 %s are allowed, one more is not", async (_, letter, most) => {
    const [allowed, beyond] = [letter.repeat(most), letter.repeat(most + 1)];
    expect((await ask(site, encoded(`/works?fields=${allowed}`))).status).toBe(200);
    await expectError(site, `/works?fields=${beyond}`, 400, "INVALID_FIELDS", "fields");
    await expectError(site, `/works/search?q=orchard&fields=${beyond}`, 400, "INVALID_FIELDS", "fields");
    expect((await ask(site, encoded(`/works/${libraryId(1)}?populate=${allowed}`))).status).toBe(200);
    await expectError(site, `/works/${libraryId(1)}?populate=${beyond}`, 400, "INVALID_POPULATE", "populate");
  });

  test.each(["ab", "é日", "😀😀", "x".repeat(200), "😀".repeat(200), `++${"x".repeat(200)}++`])(
    "a term of 2 to 200 characters is accepted: q=%s",
    async (q) => {
      const got = await ask(site, encoded(`/works/search?q=${q}`));
      expect([got.status, got.json.error?.code]).toEqual([200, undefined]);
    },
  );

  test.each([
    "",
    "q=",
    "q",
    "q=a",
    "q=+a+",
    "q=%F0%9F%98%80",
    "q=++",
    `q=${"x".repeat(201)}`,
    `q=${"😀".repeat(201)}`,
    "Q=orchard",
  ])("a search without a term of 2 to 200 characters is refused: %s", (query) =>
    expectError(site, `/works/search?${query}`, 400, "INVALID_QUERY", "q"),
  );

  test("parameters are checked in the order filter, sort, page, per_page, fields, q", async () => {
    const faults: [string, string][] = [
      ["filter[nope]=x", "INVALID_FILTER"],
      ["sort=nope", "INVALID_SORT"],
      ["page=0", "INVALID_PAGE"],
      ["per_page=0", "INVALID_PER_PAGE"],
      [`fields=${"x".repeat(501)}`, "INVALID_FIELDS"],
      ["q=x", "INVALID_QUERY"],
    ];
    for (const [index, [, code]] of faults.entries()) {
      const left = faults.slice(index).map(([query]) => query);
      const got = await ask(site, `/works/search?${left.reverse().join("&")}`);
      expect(got.json.error.code).toBe(code);
    }
  });

  test.each([
    ["POST", "/nope", undefined, 405, "METHOD_NOT_ALLOWED"],
    ["GET", "/works/x/y", undefined, 404, "NOT_FOUND"],
    ["GET", "/nope?filter[x]=1", undefined, 401, "MISSING_APP_KEY"],
    ["GET", "/nope?filter[x]=1", "nobody", 401, "INVALID_APP_KEY"],
    ["GET", "/nope?filter[x]=1&page=0", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", "/nope/search", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", "/nope/x", LIBRARY_KEY, 404, "CONTENT_TYPE_NOT_FOUND"],
    ["GET", `/works/x?populate=${"x".repeat(501)}`, LIBRARY_KEY, 404, "ENTRY_NOT_FOUND"],
    ["GET", `/works/${libraryId(7)}?populate=${"x".repeat(501)}`, LIBRARY_KEY, 404, "ENTRY_NOT_FOUND"],
    ["GET", `/works/${libraryId(1)}?populate=${"x".repeat(501)}`, LIBRARY_KEY, 400, "INVALID_POPULATE"],
  ])("the first failing check sets the error: %s %s with key %s", async (method, target, appKey, status, code) => {
    const got = await askRaw(site, `/api/v1${target}`, { method, ...(appKey === undefined ? {} : { appKey }) });
    expect([got.status, got.json.error.code]).toEqual([status, code]);
  });

  test.each([
    ["/works?filter[nope]=x", ["'nope' is no filterable field", "title", "category", "published_at"]],
    ["/works?filter[titel]=x", ["'titel' is no filterable field", "Did you mean title?"]],
    ["/works?filter[Title]=x", ["Did you mean title?"]],
    ["/works?filter[id]=x", ["'id' is no filterable field"]],
    ["/works?filter[]=x", ["filter[field]=value", "title"]],
    ["/works?filter[title][GT]=1", ["'GT' is no filter operator", "Did you mean gt?"]],
    ["/works?filter[title][equals]=x", ["'equals' is no filter operator", "Did you mean eq?"]],
    ["/works?filter[title][not_in]=x", ["Did you mean nin?"]],
    ["/works?filter[title][constructor]=x", ["'constructor' is no filter operator. Operators: eq,"]],
    ["/works?sort=title:desc", ["sort is one field, with a leading '-' for descending order", "title"]],
    ["/works?sort=title%20desc", ["sort is one field, with a leading '-' for descending order", "title"]],
    ["/works?sort=Title", ["'Title' is no sortable field", "Did you mean title?"]],
    ["/works?sort=-titel", ["'titel' is no sortable field", "Did you mean title?"]],
    ["/works?sort=category", ["'category' is a field of 'works', but not a sortable one"]],
    ["/works?sort=title,day", ["sort is one field"]],
    ["/works?filter[title][zz]=x", ["eq", "neq", "gte", "contains", "starts_with", "nin"]],
    ["/works?sort=nope", ["title", "starts_at", "published_at", "updated_at"]],
    [`/works?sort=${"x".repeat(101)}`, ["100", "title"]],
    ["/works?page=0", ["1"]],
    ["/works?per_page=0", ["1 to 100"]],
    [`/works?fields=${"x".repeat(501)}`, ["500"]],
    [`/works/${libraryId(1)}?populate=${"x".repeat(501)}`, ["500"]],
    ["/works/search", ["2 to 200"]],
    ["/works?filter[price][gt]=x", ["number"]],
    ["/works?filter[day][gt]=x", ["2026-01-20"]],
    ["/works?filter[in_print][gt]=1", ["boolean", "eq"]],
    ["/nope", ["_schemas"]],
    ["/works/x", ["UUID"]],
  ])("the error message of %s says what was wrong and what is allowed: %j", async (target, words) => {
    const { error } = (await ask(site, target)).json;
    for (const word of words) expect(error.message).toContain(word);
  });

  test("an error has the keys code, message and parameter, in this order", async () => {
    const got = await ask(site, "/works?filter[colour]=x");
    expect(got.text).toMatch(
      /^\{"error":\{"code":"INVALID_FILTER","message":"[^"]+","parameter":"filter\[colour\]"\}\}$/,
    );
  });
});

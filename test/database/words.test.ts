/**
 * The words that search reads match the text of the entries, however they are written: by statements on one row or on
 * many, by cascades from the app or the type, and by changes of the fields.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { GOODS, ID, KEY } from "../support/goods.ts";
import { type ApiServer, ENGINES, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";

const id = (number: number) => ID.slice(0, -2) + String(number).padStart(2, "0");
const TYPE = "(SELECT id FROM precast.content_types WHERE slug = 'goods')";

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  /** A server that runs all the time, without a tree. */
  let api: ApiServer;

  beforeAll(async () => {
    store = await openStore(engine);
    await loadBundles(store, [GOODS]);
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
      SELECT ${TYPE}, name, position, type, searchable FROM (VALUES
        ('body', 1, 'rich_text', true), ('price', 2, 'number', false), ('note', 3, 'text', false)) AS added (name, position, type, searchable)`);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    expect(api.errors).toEqual([]);
    await api.close();
    await store.close();
  });

  /** Uses a new connection where there can be several, so that no statement depends on the session state of another. */
  const run = (text: string) => {
    store.database.renewConnections();
    return store.database.query(sql(text));
  };
  const one = (number: number) => `content_type_id = ${TYPE} AND id = '${id(number)}'`;
  /** The ids that a search finds, by their last digits, in order. */
  const answered = async (query: string): Promise<number[]> => {
    const got = await api.get(`/api/v1/goods/search?per_page=50&q=${query}`, { appKey: KEY });
    expect(got.status).toBe(200);
    return got.json.data.map((item: { id: string }) => Number(item.id.slice(-2)));
  };
  /** The same. Also checks that what is stored for search is right. */
  const found = async (query: string): Promise<number[]> => {
    expect([await stale(), await missingTerms()]).toEqual([[], []]);
    return answered(query);
  };
  /** Stored words that differ from the text of their entry, and published entries without words. */
  const stale = () =>
    run(`SELECT coalesce(e.id, w.id)::text, e.status, w.words, e.published_at::text, w.published_at::text
      FROM (SELECT * FROM precast.entries WHERE status = 'published') AS e
      FULL JOIN precast.entry_words AS w USING (content_type_id, id)
      WHERE (w.words, w.published_at) IS DISTINCT FROM (precast.words_of(content_type_id, e.data, e.rich), e.published_at)`);
  const missingTerms = () =>
    run(`SELECT id::text, term FROM precast.entry_words AS w CROSS JOIN unnest(precast.terms_in(words)) AS term
      WHERE NOT EXISTS (SELECT FROM precast.terms AS t WHERE (t.content_type_id, t.term) = (w.content_type_id, term))`);
  const add = (numbers: readonly number[], data: object, more = "") =>
    run(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
      SELECT ${TYPE}, id, 'published', '2026-01-21T00:00Z', '${JSON.stringify(data)}'
      FROM unnest('{${numbers.map(id).join(",")}}'::uuid[]) AS id ${more}`);

  test("new words are looked up by the index, although the planner knows few and keeps its plan", async () => {
    const [count] = await store.database.transaction("write", async (session) => {
      await session.execute(`ANALYZE precast.terms;
        INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
          SELECT ${TYPE}, gen_random_uuid(), 'published', now(), '{"note": "counted"}' FROM generate_series(1, 300);
        UPDATE precast.entries SET data = data || jsonb_build_object('title', id) WHERE data ->> 'note' = 'counted'`);
      const read = "SELECT pg_stat_get_xact_tuples_returned('precast.terms_pkey'::regclass)::text";
      const rows = await session.query(sql(read));
      await session.execute("DELETE FROM precast.entries WHERE data ->> 'note' = 'counted'");
      return rows[0] ?? [];
    });
    expect(Number(count)).toBeLessThan(1_000);
  });

  test("an entry is found by the words of its searchable fields only", async () => {
    await add([10, 11], { title: "Otter", body: "<p>river</p><p>bank</p>", note: "hidden" });
    expect(await found("otter")).toEqual([10, 11]);
    expect(await found("river+bank")).toEqual([10, 11]);
    expect(await found("riverbank")).toEqual([]);
    expect(await found("hidden")).toEqual([]);
  });

  test("an entry that an upsert replaces is found by its new words", async () => {
    const update = "ON CONFLICT (content_type_id, id) DO UPDATE SET data = excluded.data, rich = excluded.rich";
    await add([11, 12], { title: "Badger" }, update);
    expect(await found("otter")).toEqual([10]);
    expect(await found("badger")).toEqual([11, 12]);
  });

  test("an entry is found as a custom AFTER INSERT trigger leaves it", async () => {
    const title = (text: string) => `UPDATE precast.entries SET data = data || '{"title": "${text}"}'`;
    const mine = "WHERE content_type_id = NEW.content_type_id AND id = NEW.id";
    await run(`CREATE FUNCTION public.improve() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      CASE right(NEW.id::text, 2)
        WHEN '20' THEN ${title("Improved polecat")} ${mine};
        WHEN '21' THEN UPDATE precast.entries SET published_at = '2026-01-20T00:00Z' ${mine};
        WHEN '22' THEN UPDATE precast.entries SET status = 'draft' ${mine};
        WHEN '23' THEN DELETE FROM precast.entries ${mine};
        WHEN '24' THEN UPDATE precast.entries SET id = '${id(25)}' ${mine};
        ELSE NULL;
      END CASE;
      RETURN NULL;
    END $$`);
    await run("CREATE TRIGGER a AFTER INSERT ON precast.entries FOR EACH ROW EXECUTE FUNCTION public.improve()");
    await add([20, 21, 22, 23, 24, 26], { title: "Polecat" });
    expect(await found("polecat")).toEqual([20, 25, 26, 21]);
    expect(await found("improved")).toEqual([20]);
    await run("DROP FUNCTION public.improve CASCADE");
    await run(`DELETE FROM precast.entries WHERE data ->> 'title' LIKE '%olecat'`);
  });

  test("edits of texts are found, in one entry and in many", async () => {
    await run(`UPDATE precast.entries SET data = data || '{"title": "Marten"}' WHERE ${one(12)}`);
    expect([await found("badger"), await found("marten")]).toEqual([[11], [12]]);
    await run(`UPDATE precast.entries SET rich = '{"body": "<b>bur</b>row"}' WHERE ${one(11)} OR ${one(12)}`);
    expect(await found("burrow")).toEqual([11, 12]);
    await run(`UPDATE precast.entries SET data = data || '{"body": "hollow"}' WHERE ${one(12)}`);
    expect([await found("burrow"), await found("hollow")]).toEqual([[11], [12]]);
    await run(`UPDATE precast.entries SET rich = '{}' WHERE ${one(12)}`);
    expect(await found("hollow")).toEqual([]);
  });

  test("an edit of fields that are not searchable does not write the stored words", async () => {
    const places = () => run("SELECT id::text, ctid::text FROM precast.entry_words ORDER BY id");
    const before = await places();
    await run(`UPDATE precast.entries SET data = data || '{"price": 5, "note": "other"}', updated_at = now()`);
    expect(await places()).toEqual(before);
    expect(await found("burrow")).toEqual([11]);
  });

  test("search results follow a change of published_at", async () => {
    await run(`UPDATE precast.entries SET data = data || '{"title": "Otter"}' WHERE ${one(11)}`);
    expect(await found("otter")).toEqual([10, 11]);
    await run(`UPDATE precast.entries SET published_at = '2026-01-22T00:00Z' WHERE ${one(11)}`);
    expect(await found("otter")).toEqual([11, 10]);
    expect(await found("otter&sort=published_at&filter[title]=Otter")).toEqual([11, 10]);
  });

  test("search results follow the published_at that a custom AFTER UPDATE trigger sets", async () => {
    await run(`CREATE FUNCTION public.redate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF pg_trigger_depth() < 2 THEN
        UPDATE precast.entries SET published_at = '2026-01-19T00:00Z' WHERE content_type_id = NEW.content_type_id AND id = NEW.id;
      END IF;
      RETURN NULL;
    END $$`);
    await run("CREATE TRIGGER a AFTER UPDATE ON precast.entries FOR EACH ROW EXECUTE FUNCTION public.redate()");
    await run(`UPDATE precast.entries SET published_at = '2026-01-23T00:00Z' WHERE ${one(11)}`);
    await run("DROP FUNCTION public.redate CASCADE");
    expect(await found("otter")).toEqual([10, 11]);
  });

  test("an entry is not found while it is a draft, and is found when it is published", async () => {
    await run(`UPDATE precast.entries SET status = 'draft' WHERE ${one(11)}`);
    expect(await found("otter")).toEqual([10]);
    await run(`UPDATE precast.entries SET data = data || '{"title": "Sea otter"}' WHERE ${one(11)}`);
    expect(await found("sea")).toEqual([]);
    await run(`UPDATE precast.entries SET status = 'published' WHERE ${one(11)}`);
    expect(await found("sea")).toEqual([11]);
  });

  test("an entry that gets another id or another type is found there, and no longer where it was", async () => {
    await run(`UPDATE precast.entries SET id = '${id(13)}' WHERE ${one(11)}`);
    expect(await found("sea")).toEqual([13]);
    await run(`INSERT INTO precast.content_types (app_id, slug) SELECT id, 'others' FROM precast.apps`);
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type, searchable)
      SELECT id, 'note', 1, 'text', true FROM precast.content_types WHERE slug = 'others'`);
    const other = "(SELECT id FROM precast.content_types WHERE slug = 'others')";
    await run(`UPDATE precast.entries SET content_type_id = ${other} WHERE ${one(13)}`);
    expect(await found("sea")).toEqual([]);
    const remote = await api.get("/api/v1/others/search?q=other", { appKey: KEY });
    expect(remote.json.meta.total).toBe(1);
  });

  test("a field that becomes searchable is searched in entries written before", async () => {
    await run("UPDATE precast.fields SET searchable = (name = 'note')");
    expect([await found("otter"), await found("other")]).toEqual([[], [10, 12, 1, 2, 3]]);
    await run("UPDATE precast.fields SET searchable = true WHERE type IN ('text', 'rich_text')");
    expect(await found("otter")).toEqual([10]);
    await run("DELETE FROM precast.fields WHERE name = 'note'");
    expect(await found("other")).toEqual([]);
  });

  test("any part of a text without spaces and of a very long word is found", async () => {
    const sentence = "qzx東京都庁舎vwq展望室jzy";
    const encoded = (q: string) => encodeURIComponent(q).replace("%2B", "+");
    const long = Array.from({ length: 400 }, (_, number) => `${number}x`).join("");
    await add([30], { title: `${sentence} 字 ไทยแลนด์ นะ` });
    await add([31], { title: long });
    expect(await found("vwq")).toEqual([30]);
    const letters = [...sentence];
    const parts = letters.flatMap((_, from) => letters.map((_, to) => letters.slice(from, to + 1).join("")));
    const more = ["字+นะ", "ยแ", "แลนด์"];
    for (const part of [...new Set(parts)].filter((part) => [...part].length > 1).concat(more))
      expect([part, await answered(encoded(part))]).toEqual([part, [30]]);
    for (const other of ["京庁", "都都", "庁v", "舎展", "vwq東", "ยล"])
      expect(await answered(encoded(other))).toEqual([]);
    for (let from = 0; from < long.length; from += 97)
      expect(await answered(long.slice(from, from + 190))).toEqual([31]);
    expect(await answered(`${long.slice(700, 880)}y`)).toEqual([]);
    await run(`DELETE FROM precast.entries WHERE ${one(30)} OR ${one(31)}`);
  });

  test("a word of a million letters is found by its last ones", async () => {
    await add([30], { title: `${"0123456789".repeat(100_000)}qzx` });
    expect(await found("6789qzx")).toEqual([30]);
    await run(`DELETE FROM precast.entries WHERE ${one(30)}`);
  });

  test("a part that hundreds of words have is found in all of them", async () => {
    const numbers = Array.from({ length: 60 }, (_, number) => number + 30);
    const title = (number: number) => Array.from({ length: 20 }, (_, place) => `w${number}zq${place}`).join(" ");
    for (const number of numbers) await add([number], { title: title(number) });
    const total = async (q: string) => (await api.get(`/api/v1/goods/search?q=${q}`, { appKey: KEY })).json.meta.total;
    expect([await total("zq"), await total("zq1"), await total("zq19"), await total("w55zq")]).toEqual([60, 60, 60, 1]);
    await run(`DELETE FROM precast.entries WHERE right(id::text, 2) >= '30'`);
  });

  test("the owner can drop the words that no entry has any more", async () => {
    const terms = () => run("SELECT term FROM precast.terms ORDER BY term");
    const used = await run(
      "SELECT DISTINCT unnest(precast.terms_in(words)) AS term FROM precast.entry_words ORDER BY term",
    );
    expect((await terms()).length).toBeGreaterThan(used.length);
    await store.database.transaction("write", (session) =>
      session.execute(`LOCK TABLE precast.entries IN SHARE ROW EXCLUSIVE MODE;
        TRUNCATE precast.terms; SELECT precast.add_missing_terms()`),
    );
    expect([await terms(), await found("otter")]).toEqual([used, [10]]);
  });

  test("writing an entry does not search the index of parts, which is slow while many words are new", async () => {
    await add([30], { title: Array.from({ length: 1_000 }, (_, number) => `word${number}`).join(" ") });
    await run("ANALYZE precast.terms");
    const scans = "SELECT pg_stat_get_xact_numscans(to_regclass('precast.terms_by_part'))::text";
    const statements = [
      `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        VALUES (${TYPE}, '${id(31)}', 'published', now(), '{"title": "word1 word2"}')`,
      `UPDATE precast.entries SET data = '{"title": "word3 word4"}' WHERE ${one(31)}`,
    ];
    store.database.renewConnections();
    const counted = await store.database.transaction("write", async (session) => {
      const before = await session.query(sql(scans));
      for (const statement of statements) await session.query(sql(statement));
      return [before, await session.query(sql(scans))];
    });
    expect(counted[1]).toEqual(counted[0]);
    await run(`DELETE FROM precast.entries WHERE ${one(30)} OR ${one(31)}`);
  });

  test("deleting an entry, its type, its app or all entries removes their words", async () => {
    const kept = async () => Number((await run("SELECT count(*)::text FROM precast.entry_words"))[0]?.[0]);
    expect(await kept()).toBe(6);
    await run(`DELETE FROM precast.entries WHERE ${one(10)}`);
    expect([await found("otter"), await kept()]).toEqual([[], 5]);
    await run("DELETE FROM precast.content_types WHERE slug = 'others'");
    expect([await found("lamp"), await kept()]).toEqual([[2], 4]);
    await run("TRUNCATE precast.entries");
    expect([await found("lamp"), await kept()]).toEqual([[], 0]);
    await add([10], { title: "Otter" });
    expect(await found("otter")).toEqual([10]);
    await run("DELETE FROM precast.apps");
    expect([await kept(), await run("SELECT term FROM precast.terms")]).toEqual([0, []]);
  });

  test("a role that may write entries needs no rights to write their words", async () => {
    await loadBundles(store, [GOODS]);
    await store.database.execute(`CREATE ROLE words_writer_${engine};
      GRANT USAGE ON SCHEMA precast TO words_writer_${engine};
      GRANT SELECT ON ALL TABLES IN SCHEMA precast TO words_writer_${engine};
      GRANT INSERT, UPDATE, DELETE, TRUNCATE ON precast.entries TO words_writer_${engine}`);
    await store.database.transaction("write", async (session) => {
      await session.execute(`SET LOCAL ROLE words_writer_${engine}`);
      await session.query(
        sql(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
          VALUES (${TYPE}, '${id(20)}', 'published', now(), '{"title": "beech"}')`),
      );
      await session.query(sql(`UPDATE precast.entries SET data = '{"title": "birch"}' WHERE ${one(20)}`));
      await session.query(sql(`DELETE FROM precast.entries WHERE ${one(1)}`));
    });
    expect([await found("birch"), await found("chair")]).toEqual([[20], []]);
    await store.database.execute(`DROP OWNED BY words_writer_${engine}; DROP ROLE words_writer_${engine}`);
  });
});

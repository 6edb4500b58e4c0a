/** The types of the client with those that `precast types` writes: what the compiler accepts, and what calls give. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { createClient, type Found, type Page, type Piece } from "../../dist/client/client.js";
import type {
  Atlas,
  CitiesEntry,
  CitiesItem,
  CitiesSearchItem,
  CountriesEntry,
  JourneysEntry,
  JourneysItem,
} from "../../shared/client/examples/atlas.ts";
import { atlasModel } from "../../shared/client/examples/atlas.ts";
import { openPlace, type Place } from "../support/cli.ts";

/** Never called: only the compiler reads it. */
const api = () => createClient<Atlas>({ url: "", appKey: "atlas", model: atlasModel });

let place: Place;
beforeAll(() => {
  place = openPlace();
});
afterAll(() => place.close());

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

test("the types of the examples are those that the demo has", async () => {
  const file = pathOf("shared/client/examples/atlas.ts");
  const { code, stderr } = await place.call(`types ${pathOf("cli/demo")} --write ${file} --check`);
  expect([code, stderr]).toEqual([0, ""]);
});

describe("what calls give", () => {
  test("items, as lists and searches show them", () => {
    const list = () => api().cities.list();
    expectTypeOf(list).returns.resolves.toEqualTypeOf<Page<CitiesItem>>();
    expectTypeOf(() => api().cities.search("old")).returns.resolves.toEqualTypeOf<Found<CitiesSearchItem>>();
    expectTypeOf(() => api().journeys.all()).returns.toEqualTypeOf<AsyncIterable<JourneysItem>>();
    expectTypeOf(() => api().journeys.pages()).returns.toEqualTypeOf<AsyncIterable<Page<JourneysItem>>>();
    expectTypeOf(() => api().cities.mark("", "")).returns.toEqualTypeOf<Piece[]>();
    expectTypeOf(() => api().type("cities").list()).returns.resolves.toEqualTypeOf<Page<CitiesItem>>();
  });

  test("with fields, only these, with the address of media", () => {
    const list = () => api().cities.list({ fields: ["name", "photo", "about"] });
    type Named = Pick<CitiesEntry, "id" | "name" | "photo" | "photo_url" | "about">;
    expectTypeOf(list).returns.resolves.toEqualTypeOf<Page<Named>>();
    const all = () => api().cities.all({ fields: ["name"] });
    expectTypeOf(all).returns.toEqualTypeOf<AsyncIterable<Pick<CitiesEntry, "id" | "name">>>();
    const search = () => api().cities.search("old", { fields: ["climate"] });
    expectTypeOf(search).returns.resolves.toEqualTypeOf<Found<Pick<CitiesEntry, "id" | "climate">>>();
  });

  test("entries, with only those relations populated that are named", () => {
    expectTypeOf(() => api().journeys.get("")).returns.resolves.toExtend<JourneysEntry>();
    expectTypeOf<Awaited<ReturnType<typeof plain>>["stops"]>().toEqualTypeOf<string[] | null>();
    expectTypeOf<Awaited<ReturnType<typeof populated>>["stops"]>().toEqualTypeOf<CitiesEntry[] | null>();
    expectTypeOf<Awaited<ReturnType<typeof populated>>["title"]>().toEqualTypeOf<string>();
    expectTypeOf<Awaited<ReturnType<typeof country>>>().toEqualTypeOf<CountriesEntry | null>();
  });
  const plain = () => api().journeys.get("");
  const populated = () => api().journeys.get("", { populate: ["stops"] });
  const country = async () => (await api().cities.get("", { populate: ["country_id"] })).country_id;
});

test("the compiler accepts the names that the API does, and no others", () => {
  const cities = () => api().cities;
  const accepted = () => [
    cities().list({ filter: { climate: "highland", population: { gte: 1_000, lt: 5_000 }, capital: true } }),
    cities().list({
      filter: { tags: { in: ["port", "old"] }, name: { starts_with: "A" }, published_at: { gt: "2026-01-01" } },
    }),
    cities().list({
      filter: { founded_year: 1200, country_id: { neq: "x" } },
      sort: "-population",
      page: 2,
      perPage: 5,
    }),
    cities().list({ sort: "created_at", counted: "refuse", signal: AbortSignal.abort() }),
  ];
  const refused = () => [
    // @ts-expect-error: not filterable
    cities().list({ filter: { photo: "x.jpg" } }),
    // @ts-expect-error: not sortable
    cities().list({ sort: "climate" }),
    // @ts-expect-error: a number
    cities().list({ filter: { population: "many" } }),
    // @ts-expect-error: no operator
    cities().list({ filter: { name: { like: "A" } } }),
    // @ts-expect-error: a boolean has no order
    cities().list({ filter: { capital: { gt: true } } }),
    // @ts-expect-error: a relation has no order
    cities().list({ filter: { country_id: { gt: "x" } } }),
    // @ts-expect-error: no field
    cities().list({ fields: ["nme"] }),
    // @ts-expect-error: it comes with the photo
    cities().list({ fields: ["photo_url"] }),
    // @ts-expect-error: no relation
    cities().get("", { populate: ["name"] }),
    // @ts-expect-error: no parameter
    cities().list({ per_page: 5 }),
    // @ts-expect-error: no type
    api().towns,
    // @ts-expect-error: no word for it
    createClient<Atlas>({ url: "", appKey: "", counted: "maybe" }),
  ];
  expect([accepted, refused]).toHaveLength(2);
});

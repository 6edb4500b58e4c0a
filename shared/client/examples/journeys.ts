/** Prints the featured journeys with their stops: `npx tsx journeys.ts [url]`. `atlas.ts` is from `precast types`. */
import { ApiError, createClient } from "precast/client";
import { type Atlas, atlasModel } from "./atlas.ts";

let counted = 0;
const api = createClient<Atlas>({
  url: process.argv[2] ?? "http://127.0.0.1:3000",
  appKey: "atlas",
  model: atlasModel,
  onRequest: (sent) => {
    if (sent.counted) counted++;
  },
});

try {
  // One filter, alone, is free. `populate` would be counted, and the cities of all journeys are a few free pages.
  const names = new Map<string, string>();
  for await (const { id, name } of api.cities.all()) names.set(id, name);
  const { data } = await api.journeys.list({ filter: { featured: true } });
  for (const { title, stops } of data)
    console.log(`${title}: ${(stops ?? []).map((id) => names.get(id) ?? "?").join(", ")}`);
  console.log(`Requests that count: ${counted}`);
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}

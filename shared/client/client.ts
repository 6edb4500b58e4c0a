/** What apps import as `precast/client`. */
import { openClient } from "./reads.ts";
import type * as Public from "./types.ts";

export { ApiError } from "./transport.ts";

export const createClient = openClient as unknown as typeof Public.createClient;

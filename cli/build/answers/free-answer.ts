/** A free request and its answer, which becomes one file of the tree. */
import type { Address } from "../../../shared/address.ts";

export type FreeAnswer = { readonly address: Address; readonly body: string };

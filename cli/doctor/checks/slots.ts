/** Finds filterable and sortable fields of large types that have no slot: lists that use them may read every entry. */
import type { ContentType, Field } from "../../../shared/catalog.ts";
import { defaultSort } from "../../../shared/sort.ts";
import type { Slots } from "../../../shared/sql/slots.ts";
import { MAX_PLACEHOLDERS } from "../../../shared/sql/where.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck, type TypeSize } from "../check.ts";
import { CHANGE_WRITES, type Finding } from "../finding.ts";
import { readLargeTypes } from "../large-types.ts";

export const slotsCheck = defineCheck({
  name: "slots",
  gather: readSlotless,
  judge: (types) => types.flatMap(findingsOf),
});

/** Settings of a content type by which a field is sorted or filtered, those that sort first. */
const NAMING = ["sortable_fields", "default_sort", "filterable_fields"] as const;
type Naming = (typeof NAMING)[number];

type Slotless = {
  readonly name: string;
  readonly type: Field["type"];
  /** The settings of the type that name the field. */
  readonly namedIn: readonly Naming[];
  /** Whether the field lost its slot because an entry had texts too long for an index, alone or together. */
  readonly isLong: boolean;
};
type TypeSlots = TypeSize & { readonly typeId: string; readonly slotless: readonly Slotless[] };

async function readSlotless(context: CheckContext): Promise<TypeSlots[]> {
  const large = await readLargeTypes(context);
  return large.map(({ size, slots }) => ({ ...size, typeId: slots.typeId, slotless: slotlessOf(size, slots) }));
}

function slotlessOf({ type }: TypeSize, { slotOf, map }: Slots): Slotless[] {
  const { long = [] } = JSON.parse(map) as { long?: readonly string[] };
  // Leaves out `multiple` fields: another index serves equality filters on them.
  return type.fields
    .filter((field) => !field.multiple && slotOf(field) === null)
    .map(({ name, type: kind }) => ({
      name,
      type: kind,
      namedIn: settingsWith(type, name),
      isLong: long.includes(name) && !isNumeric(kind),
    }))
    .filter(({ namedIn }) => namedIn.length > 0);
}

function settingsWith(type: ContentType, name: string): readonly Naming[] {
  const { sortable_fields, filterable_fields } = type;
  const named = { sortable_fields, default_sort: [defaultSort(type).column.name], filterable_fields };
  return NAMING.filter((setting) => named[setting].includes(name));
}

const TOO_LONG =
  "an entry was too long for an index, either by its text in this field (more than 2,000 bytes) or by all its texts in slots together (more than 2,400 bytes)";

function findingsOf({ app, type, typeId, entries, slotless }: TypeSlots): Finding[] {
  return slotless.map((field) => {
    const { name, type: kind, namedIn, isLong } = field;
    // Most filters ask for a value, which needs no slot, so a field that is only filterable is no reason for advice.
    const sorts = namedIn.some((setting) => setting !== "filterable_fields");
    return {
      kind: sorts ? "advice" : "information",
      subject: `${app.key}/${type.slug}: ${name}`,
      problem: `The field has no slot, because ${isLong ? TOO_LONG : "all slots are taken"}: ${sorts ? "a sort by it" : readBy(kind)} reads ${formatCount(entries)} entries.`,
      gain: "Pages and their totals are read from an index.",
      remedy: `${isLong ? longRemedy(field, typeId) : takenRemedy(kind)} ${CHANGE_WRITES}`,
      fix: null,
    };
  });
}

function longRemedy({ name, namedIn }: Slotless, typeId: string): string {
  const settings = namedIn.join(" and ");
  return `Remove it from ${settings}, or name a field with shorter texts there. Or shorten the texts, then run UPDATE precast.slots SET map = jsonb_set(map, '{long}', (map -> 'long') - '${name}') WHERE content_type_id = ${typeId}; SELECT precast.assign_slots(${typeId}); as the owner of the tables.`;
}

function takenRemedy(type: Field["type"]): string {
  return `Remove ${peersOf(type)} field that no client uses from filterable_fields and sortable_fields. Its slot goes to the next field without one, sortable fields first.`;
}

/** The filters that read every entry, for a field that is not sortable: all that the index of values does not find. */
function readBy(type: Field["type"]): string {
  return type === "number"
    ? "a filter on it"
    : `a filter on it, except eq and in with up to ${MAX_PLACEHOLDERS} values,`;
}

/** The field types that share slots with this one, in words. */
function peersOf(type: Field["type"]): string {
  return isNumeric(type) ? "a number or boolean" : "a text, select, media, relation, date or datetime";
}

function isNumeric(type: Field["type"]): boolean {
  return type === "number" || type === "boolean";
}

/** Edits by SQL as a CMS makes them: of an entry in Precast's tables (`ours`), and of a row by hand (`theirs`). */
import { articleOf, peopleOf, searchedText } from "./article.ts";

export type Statement = { readonly text: string; readonly values: unknown[] };
export type Edit = {
  readonly what: string;
  readonly ours: (number: number, total: number) => Statement;
  readonly theirs: (number: number, total: number) => Statement;
};

export const TYPE = "(SELECT id FROM precast.content_types WHERE slug = 'articles')";
const OURS = `UPDATE precast.entries SET data = data || $2::jsonb, updated_at = now() WHERE content_type_id = ${TYPE} AND id = $1`;

export const EDIT_KINDS: readonly Edit[] = [
  {
    what: "title and price",
    ours: (number, total) => ({ text: OURS, values: [idOf(number, total), JSON.stringify(newValues(number))] }),
    theirs: (number, total) => {
      const { title, price } = newValues(number);
      const words = searchedText(title, articleOf(number, peopleOf(total)).body);
      const text = `WITH edited AS (
          UPDATE hand.articles SET title = $2, price = $3, updated_at = now() WHERE id = $1 RETURNING id)
        UPDATE hand.article_words AS w SET words = $4 FROM edited WHERE w.id = edited.id`;
      return { text, values: [idOf(number, total), title, price, words] };
    },
  },
  {
    what: "price alone",
    ours: (number, total) => ({ text: OURS, values: [idOf(number, total), JSON.stringify({ price: number / 4 })] }),
    theirs: (number, total) => ({
      text: "UPDATE hand.articles SET price = $2, updated_at = now() WHERE id = $1",
      values: [idOf(number, total), number / 4],
    }),
  },
];

export function idOf(number: number, total: number): string {
  return articleOf(number, peopleOf(total), 1).id;
}

function newValues(number: number) {
  return { title: `Edited ${number} anew`, price: number / 2 };
}

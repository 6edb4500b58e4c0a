/** SQL of the content types that a request may see. It names the app, so that no query sees the data of another one. */

/** The published types of the app `$1`. */
export const TYPES_OF_APP = `precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
  WHERE app.key = $1`;

/** The published type `$2` of that app: one row, or none. */
export const TYPE_OF_APP = `${TYPES_OF_APP} AND type.slug = $2`;

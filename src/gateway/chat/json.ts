export type Json = Record<string, unknown>

/** Without the fields that have no value. */
export const optional = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** `{ key: value }`, or nothing when the value is null or undefined: for keys that are left out without a value. */
export const optional = <K extends string, V>(key: K, value: V | null | undefined): { [P in K]?: V } =>
  value === null || value === undefined ? {} : ({ [key]: value } as { [P in K]: V })

/** The row of a statement that always gives one: an insert with RETURNING. */
export function returned<T>(row: T | undefined): T {
  if (row === undefined) throw new Error('a statement that must give a row gave none')
  return row
}

/** Without the keys that have no value, at any depth: as JSON keeps it. */
export const defined = <T extends object>(object: T): Defined<T> => JSON.parse(JSON.stringify(object))

type Defined<T> = T extends readonly (infer Item)[]
  ? Defined<Item>[]
  : T extends object
    ? { [K in keyof T]: Defined<Exclude<T[K], undefined>> }
    : T

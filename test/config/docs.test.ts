import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { schema } from '../../src/config/schema.ts'

const keysOf = ({ properties = {} }: z.core.JSONSchema.JSONSchema, path: readonly string[] = []): string[] =>
  Object.entries(properties).flatMap(([name, below]) =>
    typeof below === 'object' && below.properties ? keysOf(below, [...path, name]) : [[...path, name].join('.')],
  )

test('docs/configuration.md names every key', () => {
  const rows = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8').split('\n')
  const keys = keysOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))
  expect(keys).toContain('gateway.timeouts.first_byte')
  // A row that names several keys of one section has the section before the first alone; one row is for all DSNs.
  const isNamed = (key: string): boolean => {
    const [section, name] = [key.slice(0, key.lastIndexOf('.')), key.slice(key.lastIndexOf('.'))]
    return rows.some(
      (row) => row.includes(`\`${key}\``) || (row.includes(`\`${section}.`) && row.includes(`\`${name}\``)),
    )
  }
  expect(keys.filter((key) => !isNamed(key) && !/^storage\.\w+_dsn$/.test(key))).toEqual([])
})

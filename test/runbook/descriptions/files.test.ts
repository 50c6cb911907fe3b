import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { packageRoot } from '../../../src/base/package-root.ts'
import { DESCRIBED_TYPES, nodeDescription } from '../../../src/runbook/descriptions.ts'
import { BUILT_IN_TYPES } from '../../../src/runbook/node-types.ts'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import type { Schema } from '../../../src/runbook/schema.ts'
import { validateWorkflow } from '../../../src/runbook/validate/index.ts'
import { findings, parsed } from '../support.ts'
import { compose } from './compose.ts'

const DIRECTORIES = ['embedded_nodes', 'cmd/openseal/embedded_nodes'].map((path) => join(packageRoot, path))
const registry = createNodeRegistry()

test('runbook#133 28 files in both directories', () => {
  expect(DESCRIBED_TYPES).toHaveLength(28)
  for (const directory of DIRECTORIES) {
    expect(readdirSync(directory).toSorted()).toEqual(DESCRIBED_TYPES.map((type) => `${type}.yaml`).toSorted())
  }
})

describe.each(DESCRIBED_TYPES)('%s', (type) => {
  test('runbook#133 the files agree with the code; `vitest -u` writes them', async () => {
    const metadata = registry.metadata(type)
    const written = await nodeDescription(type)
    if (!metadata || !written) throw new Error(`${type} is not described`)
    expect([written.displayName, written.description, written.icon].every((text) => text)).toBe(true)
    const yaml = stringify(compose(metadata, written), { lineWidth: 100, aliasDuplicateObjects: false })
    const text = await format(yaml, { ...(await resolveConfig(join(packageRoot, 'package.json'))), parser: 'yaml' })
    for (const directory of DIRECTORIES) await expect(text).toMatchFileSnapshot(join(directory, `${type}.yaml`))
  })

  test('runbook#134 every example validates', async () => {
    const { examples = [] } = (await nodeDescription(type)) ?? {}
    expect(examples.length).toBeGreaterThan(0)
    for (const { config } of examples) {
      const attributes = Object.entries(config).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
      const workflow = parsed(`node "${type}" "n" {\n${attributes.join('\n')}\n}`)
      const issues = validateWorkflow(workflow, { registry, env: {}, secrets: { key: 'x' } })
      const wrong = issues.filter(({ code, level }) => level === 'error' || ['RB219', 'RB411'].includes(code))
      expect(wrong.map(({ code, message }) => `${code} ${message}`)).toEqual([])
    }
  })
})

test('an alias finds the description; orchestrator nodes have none', async () => {
  expect((await nodeDescription('slack'))?.name).toBe('chat_a')
  expect(await nodeDescription('orch_get')).toBeUndefined()
  expect(await nodeDescription('../package')).toBeUndefined()
})

test('runbook#83 the 20 executors', () => {
  const always = BUILT_IN_TYPES.filter(({ availability }) => availability === 'always').map(({ type }) => type)
  expect(registry.types().toSorted()).toEqual(always.toSorted())
  expect(always).toHaveLength(20)
})

test('runbook#18 each of the 36 types knows its attributes and misses what it needs', () => {
  expect(BUILT_IN_TYPES).toHaveLength(36)
  for (const { type } of BUILT_IN_TYPES) {
    const schema = registry.metadata(type)?.inputSchema
    expect([type, schema?.type]).toEqual([type, 'object'])
    const found = findings(`node "${type}" "n" {\nnoSuchAttribute = 1\n}`).map((finding) => finding.slice(0, 5))
    expect([type, found.filter((code) => code === 'RB205')]).toEqual([type, ['RB205']])
    const missing = found.filter((code) => code === 'RB209')
    const alternatives = schema?.oneOf || schema?.anyOf ? 1 : 0
    expect([type, missing.length]).toEqual([type, (schema?.required?.length ?? 0) + alternatives])
  }
})

/** A constant of a wrong type, one out of bounds or out of the list, by the attribute's schema; undefined where all fits. */
function wrongValues({
  type,
  enum: allowed,
  minimum,
  maximum,
  anyOf,
  format: form,
}: Schema): [value: string, code: string][] {
  const types: readonly string[] = [type ?? []].flat()
  const found: [string, string][] = []
  if (allowed) found.push(['"no such thing"', 'RB211'])
  if (minimum !== undefined) found.push([String(minimum - 1), 'RB211'])
  if (maximum !== undefined) found.push([String(maximum + 1), 'RB211'])
  if (form === 'duration') found.push(['"five minutes"', 'RB216'])
  else if (types.length > 0 && !types.includes('object')) found.push(['{ a = 1 }', 'RB210'])
  else if (types.includes('object') && !types.includes('array')) found.push(['[1]', 'RB210'])
  else if (anyOf) found.push(['true', 'RB210'])
  return found
}

test.each(BUILT_IN_TYPES.map(({ type }) => type))(
  'runbook#18 %s: each attribute missing, of wrong type, out of its list',
  (type) => {
    const { properties = {}, required = [] } = registry.metadata(type)?.inputSchema ?? {}
    const codes = (attributes: string): string[] =>
      findings(`node "${type}" "n" {\n${attributes}\n}`).map((finding) => finding.slice(0, 5))
    for (const name of required) expect([name, codes('')]).toEqual([name, expect.arrayContaining(['RB209'])])
    for (const [name, schema] of Object.entries(properties)) {
      if (schema.evaluation === 'item') continue
      for (const [value, code] of wrongValues(schema)) {
        expect([name, value, codes(`${name} = ${value}`)]).toEqual([name, value, expect.arrayContaining([code])])
      }
    }
  },
)

test('the copies are equal', () => {
  const [first = '', second = ''] = DIRECTORIES
  for (const file of readdirSync(first)) {
    expect(readFileSync(join(second, file), 'utf8')).toBe(readFileSync(join(first, file), 'utf8'))
  }
})

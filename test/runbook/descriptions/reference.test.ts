import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { nodeDescription } from '../../../src/runbook/descriptions.ts'
import { BUILT_IN_TYPES } from '../../../src/runbook/node-types.ts'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import { alternativesText, type Schema } from '../../../src/runbook/schema.ts'
import { evaluationText, exampleText, typeText } from '../../../src/runbook/type-text.ts'

const HEAD = `# Types of nodes

All of them, with what they take and give; \`mem nodes show TYPE\` shows the same in a terminal. How to write a runbook is in
[write-a-runbook.md](write-a-runbook.md).

Every node also takes \`description\`, \`when\`, \`timeout\`, \`retry { }\` and \`on_error\`. Attributes with * are required.
A _constant_ stands in the file as it is; what is evaluated _for each item_ may use \`item\` and \`index\`; everything else is
an expression, evaluated once, when the node runs. What is _secret_ shows as \`***\` everywhere. A type whose effects are
external changes the world outside: \`--dry-run\` doesn't run it, and \`--resume\` asks before it runs one again that was
running when the program was killed. One that only reads is not run by \`--dry-run\` either, but repeated without a question.
`

const REMARKS = {
  always: '',
  'in-cluster': ' It runs in a cluster only; elsewhere a run that reaches it stops.',
  trigger: ' It starts a run, and gives the data of `--trigger-data`.',
  none: ' It has no executor: a run that reaches it stops.',
  client: ' It needs a client that a program gives: `createNodeRegistry({ orchestrator })`. `mem run` gives none.',
} as const

const cell = (text: string): string => text.replaceAll('|', '\\|')

function attributeRow(name: string, schema: Schema, required: boolean): string {
  const fallback = schema.default === undefined ? undefined : `default \`${JSON.stringify(schema.default)}\``
  const marks = [fallback, evaluationText(schema), schema.sensitive && 'secret', schema.description].filter(Boolean)
  return `| \`${name}\`${required ? ' \\*' : ''} | ${cell(typeText(schema))} | ${cell(marks.join('; '))} |`
}

const table = (head: string, rows: readonly string[]): string =>
  rows.length === 0 ? '' : `${head}\n${head.replace(/[^|]+/g, ' --- ')}\n${rows.join('\n')}\n`

async function section({ type, aliases, effects, availability }: (typeof BUILT_IN_TYPES)[number]): Promise<string> {
  const { inputSchema = {}, timeoutMs } = createNodeRegistry().metadata(type) ?? {}
  const { properties = {}, required = [] } = inputSchema
  const described = await nodeDescription(type)
  const also = aliases.length > 0 ? ` (also ${aliases.map((alias) => `\`${alias}\``).join(', ')})` : ''
  const limit = timeoutMs === undefined ? '' : ` An attempt may take ${timeoutMs / 1000} s.`
  const output = Object.entries(described?.outputSchema.properties ?? {})
  return [
    `### \`${type}\`${also}`,
    `${described?.description ?? ''} Effects: ${effects}.${limit}${REMARKS[availability]}`.trim(),
    table(
      '| Attribute | Takes | |',
      Object.entries(properties).map(([name, schema]) => attributeRow(name, schema, required.includes(name))),
    ),
    inputSchema.oneOf || inputSchema.anyOf ? `It needs ${alternativesText(inputSchema)}.` : '',
    table(
      '| Output | Is | |',
      output.map(([name, schema]) => `| \`${name}\` | ${cell(typeText(schema))} | ${cell(schema.description ?? '')} |`),
    ),
    ...(described?.examples ?? []).map(
      (example) => `${example.description}\n\n\`\`\`hcl\n${exampleText(type, example)}\n\`\`\``,
    ),
  ].join('\n\n')
}

test('docs/node-types.md says what the types take and give; `vitest -u` writes it', async () => {
  const parts = [HEAD]
  for (const category of new Set(BUILT_IN_TYPES.map((type) => type.category))) {
    parts.push(`## ${category.charAt(0).toUpperCase()}${category.slice(1)}`)
    for (const type of BUILT_IN_TYPES.filter((each) => each.category === category)) parts.push(await section(type))
  }
  const file = join(packageRoot, 'docs/node-types.md')
  const text = await format(parts.join('\n\n'), { ...(await resolveConfig(file)), parser: 'markdown' })
  await expect(text).toMatchFileSnapshot(file)
})

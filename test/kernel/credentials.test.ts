import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSkillCatalog, readSkillFiles } from '../../src/kernel/actions/catalog.ts'
import {
  checkCredentialFile,
  createCredentialResolver,
  readCredentialFile,
} from '../../src/kernel/actions/credentials.ts'
import { conceal, concealJson } from '../../src/kernel/actions/conceal.ts'
import { deskSkill } from './actions-support.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mem-test-credentials-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const write = (name: string, content: string, mode: number): string => {
  const path = join(directory, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

const scope = { kind: 'local', id: 'default' }

test('kernel#91 a credential is read on use, by scope, kind and id', async () => {
  const file = write('login', 'first\n', 0o600)
  const environment: Record<string, string> = { TOKEN: 'of the environment' }
  const resolver = createCredentialResolver(
    [
      { scope, kind: 'bearer', id: 'login', file },
      { scope, kind: 'bearer', id: 'token', env: 'TOKEN' },
      { scope, kind: 'bearer', id: 'absent', env: 'ABSENT' },
    ],
    (name) => environment[name],
  )
  expect(await resolver.resolve(scope, { kind: 'bearer', id: 'login' })).toBe('first')
  write('login', 'second', 0o600)
  expect(await resolver.resolve(scope, { kind: 'bearer', id: 'login' })).toBe('second')
  expect(await resolver.resolve(scope, { kind: 'bearer', id: 'token' })).toBe('of the environment')
  environment['TOKEN'] = 'renewed'
  expect(await resolver.resolve(scope, { kind: 'bearer', id: 'token' })).toBe('renewed')
  await expect(resolver.resolve(scope, { kind: 'bearer', id: 'absent' })).rejects.toThrow('ABSENT is not set')
  await expect(resolver.resolve({ kind: 'local', id: 'b' }, { kind: 'bearer', id: 'login' })).rejects.toThrow(
    'there is no credential bearer login in this scope',
  )
})

test('kernel#91 kernel2#87 a credential file is a regular file of its owner alone', async () => {
  const good = write('good', 'value', 0o400)
  expect(await readCredentialFile(good)).toBe('value')
  const link = join(directory, 'link')
  symlinkSync(good, link)
  await expect(readCredentialFile(link)).rejects.toThrow('must not be a symbolic link')
  await expect(readCredentialFile(write('open', 'value', 0o644))).rejects.toThrow('run chmod 600')
  await expect(readCredentialFile(write('group', 'value', 0o640))).rejects.toThrow('run chmod 600')
  await expect(readCredentialFile(write('empty', '\n', 0o600))).rejects.toThrow('is empty')
  await expect(checkCredentialFile(write('nothing', '', 0o600))).rejects.toThrow('is empty')
  await checkCredentialFile(good)
  await expect(readCredentialFile(directory)).rejects.toThrow('must be a regular file')
  await expect(readCredentialFile(join(directory, 'none'))).rejects.toThrow('ENOENT')
})

test('kernel#91 secrets leave texts and JSON in each form they come in', () => {
  const secret = 'a b/"c'
  const forms = [secret, encodeURIComponent(secret), JSON.stringify(secret), Buffer.from(secret).toString('base64')]
  expect(conceal(forms.join(' | '), [secret])).toBe('[REDACTED] | [REDACTED] | "[REDACTED]" | [REDACTED]')
  expect(concealJson({ [secret]: [secret, 1, null, { in: `x${secret}` }] }, [secret])).toEqual({
    '[REDACTED]': ['[REDACTED]', 1, null, { in: 'x[REDACTED]' }],
  })
})

test('kernel2#10 a definition with other content is a conflict, an ambiguous source malformed', () => {
  const of = (fields: Parameters<typeof deskSkill>[1]) => deskSkill('https://example.com/act', fields)
  expect(createSkillCatalog([of({}), of({})]).find('desk', '1.0.0')?.name).toBe('Desk')
  expect(() => createSkillCatalog([of({}), of({ name: 'Other' })])).toThrow('is there with other content')
  const source = (identity: string) => ({ source: { identity, format: 'file', digest: 'd' } })
  const catalog = createSkillCatalog([of(source('a')), of(source('b'))])
  expect(() => catalog.find('desk', '1.0.0')).toThrow('comes from several sources')
  expect(catalog.find('desk', '1.0.0', 'b')?.source?.identity).toBe('b')
  expect(catalog.find('desk', '2.0.0')).toBeUndefined()
})

test('definitions that contradict themselves are refused, naming where', () => {
  const action = (fields: object) => ({
    actions: {
      odd: {
        name: 'odd',
        description: 'Odd',
        inputSchema: { type: 'object' },
        sideEffect: 'read',
        risk: 'read',
        idempotency: 'none',
        ...fields,
      },
    },
  })
  for (const [fields, message] of [
    [{ sideEffect: 'write' }, 'actions.odd.idempotency'],
    [{ name: 'even' }, 'actions.odd.name'],
    [{ semanticArguments: { target: 'to' } }, 'to is no property'],
    [{ dryRunAction: 'none' }, 'none is no action'],
    [{ inputSchema: { type: 'nothing' } }, 'skill desk: actions.odd'],
    [{ transport: { kind: 'http', arguments: { a: { literal: 1, sourceArgument: 'b' } } } }, 'transport'],
  ] as const) {
    expect(() => createSkillCatalog([deskSkill('https://example.com', action(fields))])).toThrow(message)
  }
  const { transport: _, ...without } = deskSkill('https://example.com') as { transport: object }
  expect(() => createSkillCatalog([without])).toThrow('transport: is required')
})

test('skills are read from files and folders; one that is broken does not hide the others', async () => {
  const skills = join(directory, 'skills')
  mkdirSync(join(skills, 'folder'), { recursive: true })
  mkdirSync(join(skills, 'else'))
  writeFileSync(join(skills, 'folder/skill.json'), JSON.stringify(deskSkill('https://example.com', { id: 'one' })))
  writeFileSync(join(skills, 'two.yaml'), JSON.stringify(deskSkill('https://example.com', { id: 'two' })))
  writeFileSync(join(skills, 'broken.json'), '{"id": "broken"}')
  writeFileSync(
    join(skills, 'two2.yaml'),
    JSON.stringify(deskSkill('https://example.com', { id: 'two', name: 'Other' })),
  )
  writeFileSync(join(skills, 'notes.txt'), 'nothing')
  const { catalog, failures } = await readSkillFiles(skills)
  expect([catalog.find('one', '1.0.0')?.id, catalog.find('two', '1.0.0')?.id]).toEqual(['one', 'two'])
  expect(catalog.find('two', '1.0.0')?.name).toBe('Desk')
  expect(failures).toMatchObject([
    { file: join(skills, 'broken.json'), error: expect.stringMatching(/^skill: /) },
    { file: join(skills, 'two2.yaml'), error: 'skill two 1.0.0 is there with other content' },
  ])
  expect((await readSkillFiles(join(directory, 'none'))).failures).toEqual([])
})

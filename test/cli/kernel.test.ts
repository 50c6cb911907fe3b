import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openKernel } from '../kernel/api.ts'
import { createStorePlace, openStore } from '../kernel/support.ts'
import { type CliResult } from './run-cli.ts'
import { folder, useKernel, TOKEN, origin, mem, client, json, createRun, followed } from './kernel-support.ts'

useKernel()

describe('mem kernel', () => {
  test('health and capabilities', async () => {
    expect((await mem(['kernel', 'health'])).stdout).toMatch(/^ok {2}version \S+ {2}since /)
    expect(await json(['kernel', 'health'])).toMatchObject({ status: 'ok', checks: { store: { status: 'ok' } } })
    const { stdout } = await mem(['kernel', 'capabilities'])
    expect(stdout).toContain('objectives  1  create list get update\n')
  })

  test('a kernel that is not well gives exit code 3', async () => {
    const ill = await openKernel(await openStore(await createStorePlace('memory')), {
      checks: { model: async () => ({ status: 'down', detail: 'no answer' }) },
    })
    const told = await mem(['kernel', 'health', '--endpoint', ill.url])
    await ill.stop()
    await ill.store.close()
    expect(told.code).toBe(3)
    expect(told.stdout).toMatch(/^degraded[\s\S]*model {2}down/)
    expect(told.stderr).toContain('the kernel is degraded')
  })

  test('exit codes: 2 without the token, 8 for what is not there, 4 for other refusals and no server, 1 for usage', async () => {
    const refused = await mem(['runs', 'list'], { env: { KERNEL_API_TOKEN: 'wrong' } })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('KERNEL_API_TOKEN')
    expect((await mem(['runs', 'list', '--token', TOKEN], { env: { KERNEL_API_TOKEN: 'wrong' } })).code).toBe(0)
    expect((await mem(['runs', 'list', '--api-key', TOKEN], { env: { KERNEL_API_TOKEN: '' } })).code).toBe(0)
    expect(await mem(['runs', 'show', 'none'])).toMatchObject({ code: 8, stderr: expect.stringContaining('--scope') })
    expect((await mem(['objectives', 'create', '--title', ' ', '--goal', 'x', '--owner', 'agent:ana'])).code).toBe(4)
    const nobody = await mem(['runs', 'list', '--endpoint', 'http://127.0.0.1:1'])
    expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('cannot reach http://127.0.0.1:1') })
    expect((await mem(['runs', 'list', '--scope', 'local'])).code).toBe(1)
    expect((await mem(['runs', 'list', '--header', 'Authorization=x'])).code).toBe(1)
    expect((await mem(['runs', 'create', '--goal', 'x', '--owner', 'user:pia'])).code).toBe(1)
  })

  test('--endpoint wins over KERNEL_ENDPOINT, and that over MEM_ENDPOINT', async () => {
    const env = { MEM_ENDPOINT: 'http://127.0.0.1:1' }
    expect((await mem(['kernel', 'capabilities'], { env })).code).toBe(0)
    const elsewhere = { KERNEL_ENDPOINT: 'http://127.0.0.1:1' }
    expect((await mem(['kernel', 'capabilities', '--endpoint', origin()], { env: elsewhere })).code).toBe(0)
    expect((await mem(['kernel', 'capabilities'], { env: elsewhere })).code).toBe(4)
    const other = { KERNEL_ENDPOINT: '', MEM_ENDPOINT: origin() }
    expect((await mem(['kernel', 'capabilities'], { env: other })).code).toBe(0)
  })

  test('activity: the newest first, by run and type, page by page', async () => {
    const id = await createRun()
    await createRun()
    await mem(['runs', 'command', id, 'pause'])
    expect((await mem(['kernel', 'activity'])).stdout.split('\n')[0]).toContain('run.paused  user:local')
    const of = await json(['kernel', 'activity', '--run', id, '--type', 'run.created,run.resumed'])
    expect(of.items).toMatchObject([{ runId: id, eventType: 'run.created' }])
    const first = await mem(['kernel', 'activity', '--limit', '2'])
    const cursor = /more: --cursor (\S+)/.exec(first.stderr)?.[1] ?? ''
    expect((await mem(['kernel', 'activity', '--cursor', cursor])).stdout.trim().split('\n')).toHaveLength(1)
  })

  test('activity --follow tells what happens until Ctrl-C', async () => {
    await createRun()
    const stdout: string[] = []
    const told = followed(['kernel', 'activity', '--follow', '-o', 'jsonl'], stdout)
    await expect.poll(() => stdout).toHaveLength(1)
    await createRun('Count the stars')
    await expect.poll(() => stdout).toHaveLength(2)
    process.emit('SIGINT')
    expect(await told).toBe(0)
    expect(stdout.map((line) => JSON.parse(line).eventType)).toEqual(['run.created', 'run.created'])
  })

  test('agents: install from a file, list, show', async () => {
    const file = join(folder, 'ana.yaml')
    writeFileSync(
      file,
      `manifest:
  id: ana
  version: '1'
  displayName: Ana
  purpose: Look
  systemPrompt: Look up.
  authority: { maximumRisk: read }
deployment: { id: ana, environment: test }
`,
    )
    const installed = await mem(['kernel', 'agents', 'install', file])
    expect(installed.stderr).toBe('')
    expect(installed.stdout).toMatch(/^ana {2}active {2}test\/\S+\/ana@1 {2}test {2}Ana\n$/)
    expect((await json(['kernel', 'agents', 'list'])).items).toHaveLength(1)
    expect(await json(['kernel', 'agents', 'show', 'ana'])).toMatchObject({ definition: { systemPrompt: 'Look up.' } })
    const wrong = join(folder, 'wrong.json')
    writeFileSync(wrong, '{"manifest": {"id": "x"}}')
    expect(await mem(['kernel', 'agents', 'install', wrong])).toMatchObject({ code: 1 })
    writeFileSync(wrong, '{"manifest": {"id": "x"}, "deployment": {"id": "x", "environment": "test"}}')
    expect(await mem(['kernel', 'agents', 'install', wrong])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('manifest.version'),
    })
  })
})

describe('mem kernel bindings', () => {
  const manifest = {
    id: 'ana',
    version: '1',
    displayName: 'Ana',
    purpose: 'Write',
    systemPrompt: 'Write letters.',
    skillRequirements: [{ skillId: 'desk' }],
    authority: { maximumRisk: 'write' },
  }
  const desk = { id: 'desk', skillId: 'desk', skillVersion: '1.0.0', allowedActions: ['note'], maximumRisk: 'write' }
  const install = (fields: { bindings?: object[]; rolloutStatus?: string }): Promise<CliResult> => {
    const { bindings, ...more } = fields
    const file = join(folder, 'agent.json')
    const deployment = { id: 'ana', environment: 'test', ...more }
    writeFileSync(file, JSON.stringify({ manifest, deployment, ...(bindings && { bindings }) }))
    return mem(['kernel', 'agents', 'install', file])
  }
  const state = async () => {
    const { deployment } = await client().agents.get('ana')
    const { items } = await client().skills.bindings({ type: 'agent', id: 'ana' })
    return [deployment.rolloutStatus, deployment.revision, items.map(({ revision }) => revision)]
  }

  test('an agent is installed with its skills, and takes no runs until they are bound', async () => {
    const broken = await install({ bindings: [{ ...desk, maximumRisk: 'destructive' }] })
    expect(broken).toMatchObject({ code: 4, stderr: expect.stringContaining('binding.maximumRisk') })
    expect(await state()).toEqual(['pending', 1, []])
    expect((await install({ bindings: [desk] })).stdout).toMatch(/^ana {2}active /)
    expect(await state()).toEqual(['active', 2, [1]])
    expect((await install({ bindings: [desk] })).stderr).toBe('')
    expect(await state()).toEqual(['active', 2, [1]])

    const onlyHi = { ...desk, argumentRestrictions: { note: { text: { const: 'hi' } } } }
    expect((await install({ bindings: [onlyHi] })).code).toBe(0)
    expect(await state()).toEqual(['active', 4, [2]])
    const { stdout } = await mem(['kernel', 'activity', '--type', 'skill.binding_created,skill.binding_updated'])
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringContaining('skill.binding_updated  user:local'),
      expect.stringContaining('skill.binding_created  user:local'),
    ])
  })

  test('an agent that was paused stays so, and the command says it', async () => {
    await install({ bindings: [desk], rolloutStatus: 'paused' })
    const again = await install({ bindings: [{ ...desk, allowedActions: ['look'] }] })
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('it is paused') })
    expect((await state())[0]).toBe('paused')
    await install({ bindings: [{ ...desk, allowedActions: ['look'] }], rolloutStatus: 'active' })
    expect((await state())[0]).toBe('active')
    expect((await install({ bindings: [{ skillId: 'desk' }] })).stderr).toContain('each with its id')
  })

  test('put, list and disable', async () => {
    await install({})
    const { id: _, ...content } = desk
    const file = join(folder, 'binding.yaml')
    writeFileSync(file, JSON.stringify(content))
    const put = (...flags: string[]) => mem(['kernel', 'bindings', 'put', 'ana', 'letters', file, ...flags])
    const shown = 'letters  enabled  desk@1.0.0  write  note\n'
    expect(await put()).toMatchObject({ code: 0, stdout: shown, stderr: '' })
    expect((await put('--revision', '0')).stderr).toContain('revision conflict')
    expect((await mem(['kernel', 'bindings', 'list', 'ana'])).stdout).toBe(shown)
    expect((await client().skills.actions('ana')).actions).toMatchObject([{ name: 'desk.note', bindingId: 'letters' }])
    const disable = ['kernel', 'bindings', 'disable', 'ana', 'letters', '--reason', 'no letters at night']
    expect((await mem(disable)).stdout).toContain('letters  disabled')
    expect((await client().skills.actions('ana')).actions).toEqual([])
    expect((await mem(disable)).code).toBe(4)
    expect((await put()).stdout).toBe(shown)
    const { items } = await json(['kernel', 'bindings', 'list', 'ana'])
    expect(items[0].lifecycle).toMatchObject([
      { action: 'created', actor: { type: 'user', id: 'local' } },
      { action: 'disabled', reason: 'no letters at night' },
      { action: 'enabled' },
    ])
    expect((await mem(['kernel', 'bindings', 'list', 'none'])).code).toBe(8)
    expect((await mem(['kernel', 'bindings', 'list', 'ana', '--team'])).code).toBe(8)
    writeFileSync(file, '- a list')
    expect((await put()).code).toBe(1)
  })
})

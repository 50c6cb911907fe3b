import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deskSkill } from '../kernel/actions-support.ts'
import { BY_USER, deploymentOf, manifestOf } from '../kernel/registry-support.ts'
import { startEffectServer, type EffectServer } from '../support/effect-server.ts'
import { startMemoryApi, type MemoryApi, type Reply } from '../support/memory-api.ts'
import { startScriptedModel, type ScriptedModel } from '../support/scripted-model.ts'
import { PROBLEMS } from './accessibility.ts'
import { describeAtSite } from './browser.ts'

const SCOPE = 'scopeKind=local&scopeId=default'

interface KernelSite extends MemoryApi {
  model: ScriptedModel
  service: EffectServer
  /** A request to the kernel. */
  ask(method: string, path: string, body?: object): Promise<Reply>
}

/** A server whose kernel has a model, an agent and a skill that writes to a service. */
async function startSite(): Promise<KernelSite> {
  const [model, service] = await Promise.all([startScriptedModel(), startEffectServer()])
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-'))
  mkdirSync(join(dataDir, 'skills'))
  writeFileSync(join(dataDir, 'skills/desk.json'), JSON.stringify(deskSkill(service.url)))
  const api = await startMemoryApi({
    dialect: 'sqlite',
    dataDir,
    flags: { 'standalone-operator': true },
    env: { KERNEL_MODEL_BASE_URL: model.baseUrl, KERNEL_MODEL_NAME: 'scripted', KERNEL_MODEL_API_KEY: 'none' },
  })
  let keys = 0
  const ask: KernelSite['ask'] = (method, path, body) =>
    api.call(method, `//api/v1${path}${path.includes('?') ? '&' : '?'}${SCOPE}`, body, {
      headers: { 'Idempotency-Key': `key ${++keys}` },
    })
  const authority = { maximumRisk: 'external', maxConcurrentRuns: 4 }
  const manifest = manifestOf({ authority, skillRequirements: [{ skillId: 'desk' }] })
  await ask('POST', '/agent-installations', { ...BY_USER, manifest, deployment: deploymentOf() })
  const bound = await ask('PUT', '/agent-deployments/ana/skill-bindings/desk', {
    binding: { skillId: 'desk', skillVersion: '1.0.0', allowedActions: ['look', 'note'], maximumRisk: 'write' },
    expectedRevision: 0,
    actor: { type: 'user', id: 'una' },
    reason: 'to write notes',
  })
  expect(bound).toMatchObject({ status: 201 })
  return {
    ...api,
    model,
    service,
    ask,
    stop: async () => {
      await api.stop()
      await Promise.all([model.close(), service.close()])
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

const proposal = (text: string) => ({
  outcome: {
    status: 'running',
    summary: 'The note is ready.',
    action: { bindingId: 'desk', action: 'note', arguments: { text }, summary: `Write down: ${text}` },
  },
})
const end = { outcome: { status: 'completed', summary: 'All is written down.', output: { notes: 1 } } }

describeAtSite(
  'the kernel in the console',
  startSite,
  async ({ open }) => void (await open('/kernel/runs')),
  (at) => {
    test('a run is begun, followed without reloading, approved in the inbox, and done once', async () => {
      const { page, open, site } = at()
      const goal = 'Write down that the lamp is lit'
      site.model.script(goal, [proposal('the lamp is lit'), end])
      const before = site.service.effects.length
      await page.getByRole('button', { name: 'New run' }).click()
      await page.getByLabel('Goal', { exact: true }).fill(goal)
      await page.getByLabel('Agent', { exact: true }).fill('ana')
      await page.getByRole('button', { name: 'Queue it' }).click()
      await page.getByRole('status').filter({ hasText: 'The run is queued.' }).waitFor()
      await page.getByRole('link', { name: goal }).click()
      await page.getByText('Waits for a decision: Write down: the lamp is lit').waitFor()
      await page.getByRole('link', { name: 'Decide' }).click()
      const card = page.getByRole('article', { name: 'Write down: the lamp is lit' })
      expect(await card.getByText('"text": "the lamp is lit"').count()).toBe(1)
      await card.getByRole('button', { name: 'Approve' }).click()
      await page.getByRole('status').filter({ hasText: 'Approved' }).waitFor()
      await site.service.received(before + 1)
      await open('/kernel/runs')
      await page.getByRole('link', { name: goal }).click()
      await page.getByRole('heading', { name: 'Output' }).waitFor()
      expect(site.service.effects.length).toBe(before + 1)
      expect(await page.getByText('succeeded', { exact: true }).count()).toBe(1)
    })

    test('asking for changes needs words, and the next turn hears them', async () => {
      const { page, open, site } = at()
      const goal = 'Write down the tide'
      site.model.script(goal, [proposal('high tide'), end])
      await site.ask('POST', '/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal })
      const card = page.getByRole('article', { name: 'Write down: high tide' })
      await expect
        .poll(async () => {
          await open('/kernel/approvals')
          return card.count()
        })
        .toBe(1)
      await card.getByRole('button', { name: 'Ask for changes' }).click()
      await card.getByRole('alert').getByText('must say what to change').waitFor()
      await card.getByLabel('Reason').fill('say when')
      await card.getByRole('button', { name: 'Ask for changes' }).click()
      await page.getByRole('status').filter({ hasText: 'told what to change' }).waitFor()
      await expect.poll(() => site.model.asked(goal).length).toBe(2)
      expect(JSON.stringify(site.model.asked(goal)[1]?.envelope)).toContain('say when')
    })

    test('a run is paused and canceled by its buttons', async () => {
      const { page, open, site } = at()
      const goal = 'Wait for the ship'
      site.model.script(goal, [
        { outcome: { status: 'sleeping', summary: 'Later.', wakeCondition: { type: 'event', reference: 'ship' } } },
      ])
      const { body } = await site.ask('POST', '/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal })
      await open(`/kernel/runs/${body.run.id}`)
      await page.getByText('sleeping', { exact: true }).waitFor()
      await page.reload()
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('button', { name: 'Resume' }).waitFor()
      await page.getByRole('button', { name: 'Cancel', exact: true }).click()
      await page.getByRole('button', { name: 'Cancel the run' }).click()
      await page.getByRole('status').filter({ hasText: 'canceled' }).waitFor()
      expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0)
    })

    test('headings go level by level, text stands out in both themes, nothing is inline', async () => {
      const problems: [theme: string, path: string, problems: string[]][] = []
      const list = await at().site.ask('GET', '/agent-runs')
      const pages = [
        '/runs',
        `/runs/${list.body[0].id}`,
        '/approvals',
        '/approvals?status=approved',
        '/activity',
        '/deployments',
      ]
      for (const colorScheme of ['light', 'dark'] as const) {
        await at().begin({ colorScheme, reducedMotion: 'reduce' })
        const { page, open } = at()
        for (const path of pages) {
          await open(`/kernel${path}`)
          await page.evaluate(
            'document.querySelectorAll("details:not([name])").forEach((each) => { each.open = true })',
          )
          problems.push([colorScheme, path, await page.evaluate<string[]>(PROBLEMS)])
        }
      }
      expect(problems.length).toBe(2 * pages.length)
      expect(problems.filter(([, , found]) => found.length > 0)).toEqual([])
    })
  },
)

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
const OBJECTIVE = {
  owner: { type: 'agent', id: 'ana' },
  title: 'Letters',
  goal: 'Stay in touch',
  status: 'active',
  budget: { maxTurns: 20 },
}
const end = { outcome: { status: 'completed', summary: 'All is written down.', output: { notes: 1 } } }

const revisionOf = async (site: KernelSite, id: string): Promise<{ expectedRevision: number }> => ({
  expectedRevision: (await site.ask('GET', `/agent-runs/${id}`)).body.revision,
})

/** Those that wait, once there are any. */
async function expectApprovals(site: KernelSite, runId: string): Promise<{ id: string }[]> {
  const list = async () => (await site.ask('GET', `/action-approvals?runId=${runId}&status=pending`)).body
  await expect.poll(async () => (await list()).length).toBeGreaterThan(0)
  return list()
}

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
      await expect.poll(() => card.getByText('"text": "the lamp is lit"').count()).toBe(1)
      await card.getByRole('button', { name: 'Approve' }).click()
      await page.getByRole('status').filter({ hasText: 'Approved' }).waitFor()
      await site.service.received(before + 1)
      await open('/kernel/runs')
      await page.getByRole('link', { name: goal }).click()
      await page.getByRole('heading', { name: 'Output' }).waitFor()
      expect(site.service.effects.length).toBe(before + 1)
      await expect.poll(() => page.getByText('succeeded', { exact: true }).count()).toBe(1)
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

    test('the inbox shows what comes and what was decided elsewhere, and keeps what is written', async () => {
      const { page, open, site } = at()
      const goals = ['Write down the first star', 'Write down the second star']
      const ask = async (goal = ''): Promise<string> => {
        site.model.script(goal, [proposal(goal), end])
        const { body } = await site.ask('POST', '/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal })
        return body.run.id
      }
      await open('/kernel/approvals')
      const firstRun = await ask(goals[0])
      const [first, second] = goals.map((goal) => page.getByRole('article', { name: `Write down: ${goal}` }))
      await first?.getByLabel('Reason').fill('Which one')
      await first?.getByText('Arguments').click()
      await ask(goals[1])
      await second?.waitFor()
      expect(await first?.getByLabel('Reason').inputValue()).toBe('Which one')
      expect(await first?.getByText(`"text": "${goals[0]}"`).isVisible()).toBe(false)
      const [approval] = await expectApprovals(site, firstRun)
      await site.ask('POST', `/action-approvals/${approval?.id}/decisions`, {
        decision: 'reject',
        expectedRevision: 1,
        principal: { type: 'user', id: 'local' },
      })
      await first?.waitFor({ state: 'detached' })
      await second?.getByRole('button', { name: 'Approve' }).click()
      await page.getByRole('status').filter({ hasText: 'Approved' }).waitFor()
      await second?.waitFor({ state: 'detached' })
    })

    test('an objective is made, moved with all that it says, and shows its runs', async () => {
      const { page, open, site } = at()
      await open('/kernel/objectives')
      await page.getByRole('button', { name: 'New objective' }).click()
      await page.getByLabel('Title', { exact: true }).fill('Stars')
      await page.getByLabel('Goal', { exact: true }).fill('Know the sky')
      await page.getByLabel('Turns at most').fill('9')
      await page.getByLabel('Owner').fill('ana')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('alert').getByText('owner must be type:id').waitFor()
      await page.getByLabel('Owner').fill('agent:ana')
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('status').waitFor()
      await page.getByRole('link', { name: 'Stars' }).click()
      const objectiveId = decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1) ?? '')
      // Its revision is another one now: what was meant still holds.
      const goal = 'Count the stars'
      site.model.script(goal, [end])
      await site.ask('POST', '/agent-runs', {
        owner: { type: 'agent', id: 'ana' },
        goal,
        objectiveId,
        budget: { maxTurns: 4 },
      })
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('status').filter({ hasText: 'The objective is paused.' }).waitFor()
      await page.getByRole('link', { name: goal }).click()
      await page.getByRole('link', { name: objectiveId }).click()
      await page.getByRole('button', { name: 'Retire', exact: true }).click()
      await page.getByRole('button', { name: 'It is retired' }).click()
      await page.getByRole('status').filter({ hasText: 'The objective is retired.' }).waitFor()
      expect(await page.getByRole('button', { name: 'Resume' }).count()).toBe(0)
      const { body } = await site.ask('GET', `/objectives/${objectiveId}`)
      expect(body.objective).toMatchObject({ goal: 'Know the sky', status: 'retired', budget: { maxTurns: 9 } })
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

    test('a run that moves is paused at once, and what is open or written meanwhile stays', async () => {
      const { page, open, site } = at()
      const goal = 'Walk on'
      let step = (): void => {}
      site.model.script(goal, (_, before) => ({
        after: before % 2 === 0 ? Promise.resolve() : new Promise<void>((resolve) => (step = resolve)),
        outcome: { status: 'running', summary: `Step ${before + 1}` },
      }))
      const held = site.model.held(goal)
      const { body } = await site.ask('POST', '/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal })
      await held
      await expect.poll(() => site.model.asked(goal).length).toBe(2)
      await open(`/kernel/runs/${body.run.id}`)
      await page.getByText('Step 1', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Guide' }).click()
      await page.getByLabel('Guidance').fill('To the left')
      step()
      await page.getByText('Step 3', { exact: true }).waitFor()
      expect(await page.getByLabel('Guidance').inputValue()).toBe('To the left')
      expect(await page.evaluate('document.activeElement.name')).toBe('instruction')
      await page.getByRole('button', { name: 'Close' }).click()
      step()
      await expect.poll(() => site.model.asked(goal).length).toBe(6)
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('status').filter({ hasText: 'The run is paused.' }).waitFor()
      await site.ask('POST', `/agent-runs/${body.run.id}/commands`, {
        kind: 'cancel',
        ...(await revisionOf(site, body.run.id)),
      })
      await page.getByText('canceled', { exact: true }).first().waitFor()
      await page.getByRole('button', { name: 'Resume' }).waitFor({ state: 'detached' })
    })

    test('a question to a person is answered on the page of the run, and a budget is raised there', async () => {
      const { page, open, site } = at()
      const goal = 'Write down the moon'
      site.model.script(goal, [proposal('the moon is up'), end])
      site.service.react({ drop: 'after' })
      const { body } = await site.ask('POST', '/agent-runs', {
        owner: { type: 'agent', id: 'ana' },
        goal,
        budget: { maxTurns: 1 },
      })
      const { id } = body.run
      const [approval] = await expectApprovals(site, id)
      await site.ask('POST', `/action-approvals/${approval?.id}/decisions`, {
        decision: 'approve',
        expectedRevision: 1,
        principal: { type: 'user', id: 'local' },
      })
      await open(`/kernel/runs/${id}`)
      await page.getByRole('heading', { name: /^Needs a person: It is not known whether note was done/ }).waitFor()
      await page.getByLabel('What you found').selectOption('It was done')
      await page.getByLabel('Note for the agent').fill('It stands in the book.')
      await page.getByRole('button', { name: 'Answer' }).click()
      await page.getByText('paused', { exact: true }).waitFor()
      await page.getByLabel('Turns more').fill('2')
      await page.getByRole('button', { name: 'Add and resume' }).click()
      await page.getByRole('heading', { name: 'Output' }).waitFor()
      expect(JSON.stringify(site.model.asked(goal)[1]?.envelope)).toContain('It stands in the book.')
    })

    test('headings go level by level, text stands out in both themes, nothing is inline', async () => {
      const problems: [theme: string, path: string, problems: string[]][] = []
      const list = await at().site.ask('GET', '/agent-runs')
      const { body: objective } = await at().site.ask('POST', '/objectives', {
        ...OBJECTIVE,
        successCriteria: ['All of it'],
        progressSummary: 'Half of it',
      })
      const pages = [
        '/objectives',
        `/objectives/${objective.id}`,
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

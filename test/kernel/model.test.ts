import { expect, test } from 'vitest'
import { decideApproval } from '../../src/kernel/model/action.ts'
import { evaluateAmendment, installAgent } from '../../src/kernel/model/deployment.ts'
import { createObjective, replaceObjective } from '../../src/kernel/model/objective.ts'
import { createProject, patchProject } from '../../src/kernel/model/project.ts'
import { createRequest, respondToRequest } from '../../src/kernel/model/request.ts'
import { createRun, runCommand } from '../../src/kernel/model/run.ts'
import { secretPath } from '../../src/kernel/secret-free.ts'

const OBJECTIVE = { owner: { type: 'agent', id: 'ana' }, title: 'T', goal: 'G' }
const RUN = { owner: OBJECTIVE.owner, goal: 'G' }
const PROJECT = { ...RUN, goal: undefined, title: 'T', purpose: 'P', objectiveRefs: ['o'] }
const DEEP = (key: string): object => ({ a: { b: [{ c: { [key]: 'x' } }] } })

test('kernel#6 unknown fields, wrong types and cases, and text that is empty after trimming are refused', () => {
  expect(createObjective.parse({ ...OBJECTIVE, title: '  T ' })).toEqual({ ...OBJECTIVE, status: 'draft', priority: 0 })
  for (const change of [
    { extra: 1 },
    { Title: 'x' },
    { title: '  ' },
    { title: 1 },
    { title: 'a\0b' },
    { title: '\ud800' },
    { status: 'Draft' },
    { priority: -1 },
    { priority: null },
    { owner: { type: 'user', id: 'x' } },
  ]) {
    expect([change, createObjective.safeParse({ ...OBJECTIVE, ...change }).success]).toEqual([change, false])
  }
})

test('kernel#13 a key shaped like a secret, at any depth, is refused in each field, with its path; maxInputTokens passes', () => {
  const refused = (
    schema: { safeParse(value: unknown): { success: boolean; error?: { issues: { path: PropertyKey[] }[] } } },
    base: object,
    field: string,
  ): void => {
    for (const key of [
      'password',
      'Db_Passwd',
      'client-secret',
      'accessToken',
      'X API Key',
      'accessKey',
      'private_key',
      'Credentials',
      'Authorization',
      'cookie',
    ]) {
      const result = schema.safeParse({ ...base, [field]: DEEP(key) })
      expect(result.error?.issues[0]?.path).toEqual([field, 'a', 'b', 0, 'c', key])
    }
    for (const key of ['maxInputTokens', 'secretary', 'passwordless']) {
      expect([key, schema.safeParse({ ...base, [field]: DEEP(key) }).success]).toEqual([key, true])
    }
  }
  for (const field of ['context', 'plan', 'policy']) refused(createRun, RUN, field)
  const { goal: _g, ...project } = PROJECT
  for (const field of ['policy', 'checkpoint']) refused(createProject, project, field)
  const request = { kind: 'request', requester: RUN.owner, recipient: RUN.owner, sourceRunId: 'r', goal: 'G' }
  refused(createRequest, request, 'sharedContext')
})

test('kernel#13 what is wide far down is looked through as fast as what is flat', () => {
  let value: object = Array.from({ length: 300_000 }, () => ({ a: 1 }))
  for (let depth = 0; depth < 900; depth++) value = { a: value }
  expect(secretPath(value)).toBeUndefined()
  expect(secretPath({ value, last: { cookie: 'x' } })).toEqual(['last', 'cookie'])
}, 5000)

test('kernel#23 a replacement without optional fields names none, and needs a title', () => {
  const base = { title: 'T', goal: 'G', expectedRevision: 1 }
  expect(replaceObjective.parse(base)).toEqual({ ...base, priority: 0 })
  expect(replaceObjective.safeParse({ goal: 'G', expectedRevision: 1 }).success).toBe(false)
})

test('a patch of a project names what changes and nothing else', () => {
  expect(patchProject.parse({ expectedRevision: 2, milestones: [] })).toEqual({ expectedRevision: 2, milestones: [] })
  for (const change of [
    { owner: RUN.owner },
    { id: 'x' },
    { objectiveRefs: [] },
    { objectiveRefs: ['a', 'a'] },
    { budget: {}, clearBudget: true },
  ]) {
    expect([change, patchProject.safeParse({ expectedRevision: 2, ...change }).success]).toEqual([change, false])
  }
})

test('times come with any offset and go on as UTC with milliseconds; kinds of the kernel alone are refused', () => {
  expect(createRun.parse({ ...RUN, deadline: '2026-03-02T09:00:00+01:00' }).deadline).toBe('2026-03-02T08:00:00.000Z')
  for (const change of [
    { deadline: '2026-03-02' },
    { deadline: '2026-02-30T00:00:00Z' },
    { kind: 'workforce_authoring' },
    { source: 'fork' },
    { concurrencyKey: 'a\nb' },
    { resourceRequirements: { gpu: 0 } },
    { parentRunId: 'a/b' },
    { budget: { maxTurns: 0 } },
  ]) {
    expect([change, createRun.safeParse({ ...RUN, ...change }).success]).toEqual([change, false])
  }
})

test('kernel#37 kernel#38 an instruction has 16,000 bytes at most, whatever its characters; unknown commands are refused', () => {
  const command = (fields: object): boolean =>
    runCommand.safeParse({ expectedRevision: 1, kind: 'intervene', ...fields }).success
  expect(command({ instruction: 'ä'.repeat(8000) })).toBe(true)
  expect(command({ instruction: `${'ä'.repeat(8000)}x` })).toBe(false)
  expect(command({ kind: 'stop' })).toBe(false)
  expect(command({ interventionId: 'not-a-uuid' })).toBe(false)
})

test('kernel#72 kernel#73 a decision comes in two forms that agree; changes need a reason', () => {
  const base = { expectedRevision: 1, principal: { type: 'user', id: 'u' } }
  expect(decideApproval.parse({ ...base, approve: false })).toEqual({ ...base, decision: 'reject' })
  expect(decideApproval.parse({ ...base, approve: true, decision: 'approve' })).toMatchObject({ decision: 'approve' })
  for (const change of [
    {},
    { approve: true, decision: 'reject' },
    { decision: 'request_changes' },
    { decision: 'request_changes', reason: ' ' },
  ]) {
    expect([change, decideApproval.safeParse({ ...base, ...change }).success]).toEqual([change, false])
  }
})

test('kernel#77 clarification needs words; kernel#84 each criterion once, and no member that widens what may change', () => {
  const response = { expectedRevision: 1, principal: RUN.owner, decision: 'request_clarification' }
  expect(respondToRequest.safeParse(response).success).toBe(false)
  expect(respondToRequest.safeParse({ ...response, message: 'which?' }).success).toBe(true)
  const evaluation = { criterionId: 'c', passed: true, summary: 's' }
  expect(evaluateAmendment.safeParse({ expectedRevision: 1, evaluations: [evaluation, evaluation] }).success).toBe(
    false,
  )
  expect(
    evaluateAmendment.safeParse({ expectedRevision: 1, evaluations: [evaluation], allowedFields: ['x'] }).success,
  ).toBe(false)
})

test('kernel#81 an installation says what it leaves out', () => {
  const manifest = {
    id: 'ana',
    version: '1.0.0',
    displayName: 'Ana',
    purpose: 'P',
    systemPrompt: 'S',
    authority: { maximumRisk: 'read' },
  }
  const { deployment } = installAgent.parse({
    manifest,
    deployment: { id: 'd', environment: 'default' },
    actorType: 'user',
    actorId: 'u',
  })
  expect(deployment).toMatchObject({ capacity: { maxConcurrentRuns: 1 }, restrictions: {} })
  // One that is there keeps its state where none is named; a new one is active.
  expect(deployment.rolloutStatus).toBeUndefined()
})

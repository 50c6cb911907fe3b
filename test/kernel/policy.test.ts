import { expect, test } from 'vitest'
import { defaultPolicy, evaluatePolicy, type Bounds, type Rules } from '../../src/kernel/policy.ts'
import { fixture, runOf } from './support.ts'
import type { PolicyResult } from '../../src/kernel/model/policy.ts'
import type { ProposedAction } from '../../src/kernel/ports.ts'

const scope = { kind: 'a', id: 'b' }
const BOUNDS: Bounds = {
  enabled: true,
  allowedActions: ['send'],
  maximumRisks: [
    { of: 'binding', risk: 'destructive' },
    { of: 'team', risk: 'external' },
  ],
  argumentRestrictions: {},
}
const PROPOSAL: ProposedAction = {
  scope,
  run: runOf(fixture(), { scope }),
  deploymentId: 'd',
  bindingId: 'b',
  skillId: 's',
  action: 'send',
  arguments: { to: 'x' },
  risk: 'read',
  sideEffect: 'read',
}
const judge = (proposal: Partial<ProposedAction>, rules: Partial<Rules> = {}): ReturnType<typeof evaluatePolicy> =>
  evaluatePolicy(
    { ...PROPOSAL, ...proposal },
    {
      bounds: BOUNDS,
      validators: [],
      policy: defaultPolicy(),
      log: { error: (line: unknown) => void logged.push(line) },
      ...rules,
    },
  )
const logged: unknown[] = []

test('kernel#63 by default reading is allowed, all else is for the operator to approve within 24 hours', async () => {
  expect(await judge({})).toMatchObject({ outcome: 'allow' })
  expect(await judge({ sideEffect: 'none' })).toMatchObject({ outcome: 'allow' })
  for (const proposal of [
    { risk: 'write' },
    { sideEffect: 'write' },
    { risk: 'external', sideEffect: 'read' },
  ] as const) {
    expect(await judge(proposal)).toMatchObject({
      outcome: 'require_approval',
      ttlMs: 86_400_000,
      eligibleApprovers: [{ type: 'role', id: 'operator' }],
      timeoutDecision: 'expire',
    })
  }
})

test('kernel#63 the strictest layer wins, in any combination; what throws denies', async () => {
  const order = ['allow', 'require_approval', 'deny'] as const
  for (const outcome of order) {
    for (const asks of [false, true]) {
      for (const denied of [false, true]) {
        const bounds = { ...BOUNDS, enabled: !denied, ...(asks && { requireApprovalAt: 'read' as const }) }
        const result: PolicyResult = { outcome, eligibleApprovers: [{ type: 'user', id: 'u' }] }
        const { outcome: got } = await judge({}, { bounds, policy: { evaluate: () => result } })
        expect(got).toBe(order[Math.max(order.indexOf(outcome), asks ? 1 : 0, denied ? 2 : 0)])
      }
    }
  }
  const fails = (): never => {
    throw new Error('broken')
  }
  expect(await judge({}, { policy: { evaluate: fails } })).toMatchObject({ outcome: 'deny' })
  expect(await judge({}, { policy: { evaluate: () => Promise.reject(new Error('broken')) } })).toMatchObject({
    outcome: 'deny',
  })
  expect(await judge({}, { validators: [() => undefined, fails] })).toMatchObject({ outcome: 'deny' })
  expect(logged).toMatchObject(Array.from({ length: 3 }, () => ({ err: { message: 'broken' } })))
  expect(await judge({}, { validators: [() => 'not today'] })).toMatchObject({ outcome: 'deny', reason: 'not today' })
})

test('kernel#63 what a policy says is a result, or denies: nothing passes by a mistake', async () => {
  const approvers = [{ type: 'user', id: 'u' }]
  const mistakes: unknown[] = [
    undefined,
    null,
    'deny',
    {},
    { outcome: 'ask' },
    { outcome: 'require_approval', ttlMs: Number.NaN },
    { outcome: 'require_approval', ttlMs: Infinity },
    { outcome: 'require_approval', ttlMs: -1 },
    { outcome: 'require_approval', eligibleApprovers: ['user:u'] },
    { outcome: 'require_approval', timeoutDecision: 'later' },
    { outcome: 'require_approval', destinations: [{ endpointId: 'x'.repeat(257) }] },
  ]
  for (const said of mistakes) {
    const { outcome, reason } = await judge({}, { policy: { evaluate: () => said as PolicyResult } })
    expect([said, outcome, reason]).toEqual([said, 'deny', 'the action policy failed'])
  }
  const { reason } = await judge({}, { policy: { evaluate: () => ({ outcome: 'deny', reason: 'x'.repeat(2000) }) } })
  expect(reason).toHaveLength(1024)
  expect(
    await judge(
      {},
      { policy: { evaluate: () => ({ outcome: 'allow', reason: undefined, eligibleApprovers: approvers }) } },
    ),
  ).toMatchObject({ outcome: 'allow', eligibleApprovers: approvers })
})

test('kernel#63 what the definition wants approved is for those whom the policy names', async () => {
  const bounds: Bounds = { ...BOUNDS, requireApprovalAt: 'read' }
  const me = { type: 'user', id: 'me' }
  expect(await judge({}, { bounds })).toMatchObject({ eligibleApprovers: [{ type: 'role', id: 'operator' }] })
  expect(await judge({}, { bounds, policy: defaultPolicy(me) })).toMatchObject({
    outcome: 'require_approval',
    reason: 'risk read needs approval',
    eligibleApprovers: [me],
    ttlMs: 86_400_000,
  })
})

test('bounds deny: action, risk, argument', async () => {
  expect(await judge({ action: 'delete' })).toMatchObject({ outcome: 'deny' })
  expect(await judge({ risk: 'production' })).toMatchObject({
    outcome: 'deny',
    reason: 'risk production is above the external of the team',
  })
  const bounds = { ...BOUNDS, argumentRestrictions: { to: { enum: ['x', 'y'] }, from: { const: 'me' } } }
  expect(await judge({ arguments: { to: 'y', from: 'me' } }, { bounds })).toMatchObject({ outcome: 'allow' })
  expect(await judge({ arguments: { to: 'z', from: 'me' } }, { bounds })).toMatchObject({ outcome: 'deny' })
  expect(await judge({ arguments: { to: 'x' } }, { bounds })).toMatchObject({ outcome: 'deny' })
  const place = { ...BOUNDS, argumentRestrictions: { at: { const: { city: 'Ulm', street: 'Gasse' } } } }
  const elsewhere = { at: { street: 'Gasse', city: 'Bonn' } }
  expect(await judge({ arguments: { at: { street: 'Gasse', city: 'Ulm' } } }, { bounds: place })).toMatchObject({
    outcome: 'allow',
  })
  expect(await judge({ arguments: elsewhere }, { bounds: place })).toMatchObject({ outcome: 'deny' })
})

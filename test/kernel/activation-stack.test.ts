import fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeKernels } from './api.ts'
import { BY_USER, install } from './registry-support.ts'

const VERSIONS = ['1', '2', '3', '4'] as const
const SEED = 20261122

type Step =
  { kind: 'activate'; version: string } | { kind: 'rollback'; version?: string } | { kind: 'configure'; n: number }

const version = fc.constantFrom(...VERSIONS)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('activate' as const), version }) },
  { weight: 3, arbitrary: fc.constant({ kind: 'rollback' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rollback' as const), version }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('configure' as const), n: fc.nat(1) }) },
)

/** What the kernel should do, as a plain array whose last is the version that runs. */
class Model {
  stack: string[] = ['1']
  readonly active = new Set(['1'])

  /** False for what is refused. */
  apply(next: Step): boolean {
    const top = this.stack.at(-1)
    if (next.kind === 'configure') return true
    if (next.version === top) return false
    if (next.kind === 'activate') {
      this.stack.push(next.version)
      this.active.add(next.version)
      return true
    }
    const below = this.stack.slice(0, -1)
    if (next.version === undefined) {
      if (below.length === 0) return false
      this.stack = below
      return true
    }
    const at = below.lastIndexOf(next.version)
    if (at === -1 && !this.active.has(next.version)) return false
    this.stack = at === -1 ? [...below, next.version] : below.slice(0, at + 1)
    return true
  }
}

describeKernels('the stack of versions', (open) => {
  test('kernel#83 whatever is activated and rolled back, the version that runs is the top of a plain stack', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
        const api = open().api()
        await Promise.all(
          VERSIONS.map((id) => install(api, { manifest: { version: id }, deployment: { id: `d${id}` } })),
        )
        let { deployment } = (await install(api, { manifest: { version: '1' } })).body
        const model = new Model()
        for (const next of steps) {
          const by = { ...BY_USER, expectedRevision: deployment.revision }
          const { kind } = next
          const reply =
            kind === 'activate'
              ? await api.post('/agent-deployments/ana/activations', { ...by, version: next.version })
              : kind === 'rollback'
                ? await api.post('/agent-deployments/ana/rollbacks', {
                    ...by,
                    ...(next.version && { toVersion: next.version }),
                  })
                : await api.put('/agent-deployments/ana', {
                    ...by,
                    deployment: { ...deployment, environment: `e${deployment.revision}` },
                    reason: 'r',
                  })
          expect([next, reply.status]).toEqual([next, model.apply(next) ? 200 : 409])
          if (reply.status === 200) deployment = reply.body.deployment
          expect(deployment.activeVersion).toBe(model.stack.at(-1))
        }
      }),
      { seed: SEED, numRuns: 25 },
    )
  })
})

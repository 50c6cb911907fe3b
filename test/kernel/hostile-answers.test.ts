import { expect, test } from 'vitest'
import { openStage, servedParts, useDesk } from './actions-support.ts'
import { describeKernels } from './api.ts'
import { bench, useModel } from './engine-support.ts'

const desk = useDesk()
const model = useModel()

/** Nobody can write it down again: that overflows the stack. */
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

describeKernels(
  'answers that nobody means well with',
  (open) => {
    const engine = () => bench(open(), model())

    test.each(['output', 'checkpoint', 'plan'])(
      'kernel#54 an outcome with %s nested too deep to be kept is malformed: the run ends, and no turn is asked for again',
      async (member) => {
        const it = engine()
        const goal = it.goal(`Dig a ${member}`)
        model().script(goal, ({ invocationId }) => ({
          malformed: `{"invocationId":"${invocationId}","summary":"Deep","status":"completed","${member}":${nested(20_000)}}`,
        }))
        const { id } = await it.create({ goal })
        await it.work()
        expect(await it.read(id)).toMatchObject({ status: 'failed', error: { code: 'invalid_model_output' } })
        expect(model().asked(goal)).toHaveLength(3)
        expect(model().asked(goal)[2]?.envelope.repair?.errors).toEqual([
          'the outcome is nested deeper than 1000 levels',
        ])
      },
    )

    test('kernel#54 arguments as text that is nested too deep are malformed', async () => {
      const it = engine()
      const goal = it.goal('Dig arguments')
      const action = { bindingId: 'desk', action: 'look', arguments: nested(20_000), summary: 'Looks' }
      model().script(goal, [{ outcome: { action } }])
      const { id } = await it.create({ goal })
      await it.work()
      expect(await it.read(id)).toMatchObject({ status: 'failed', error: { code: 'invalid_model_output' } })
    })

    test.each([
      ['less than nothing', { prompt_tokens: -1_000_000, completion_tokens: 10 }],
      ['more than can be counted', { prompt_tokens: 10, completion_tokens: 1e300 }],
      ['parts of tokens', { prompt_tokens: 1.5, completion_tokens: 10 }],
    ])('kernel#57 of a provider that counts %s the usage is estimated', async (_, usage) => {
      const it = engine()
      const goal = it.goal(`Count ${JSON.stringify(usage)}`)
      model().script(goal, [{ outcome: { status: 'completed' }, usage }])
      const { id } = await it.create({ goal })
      await it.work()
      const [turn] = await it.turns(id)
      expect(turn?.usage).toMatchObject({ estimated: true })
      const { inputTokens = 0, outputTokens = 0 } = (await it.read(id)).budgetUsage
      expect([inputTokens > 100 && inputTokens < 10_000, outputTokens > 10 && outputTokens < 1000]).toEqual([
        true,
        true,
      ])
    })

    test.each([
      ['NUL', '\0'],
      ['half a surrogate pair', '\ud800'],
    ])('an outcome with %s in what is free is kept as it came', async (_, broken) => {
      const it = engine()
      const goal = it.goal(`Say ${JSON.stringify(broken)}`)
      const said = { text: `a${broken}b`, [broken]: [broken] }
      model().script(goal, [
        { outcome: { status: 'running', checkpoint: said } },
        { outcome: { status: 'completed', output: said } },
      ])
      const { id } = await it.create({ goal })
      await it.work()
      await it.work()
      expect(await it.read(id)).toMatchObject({ status: 'completed', checkpoint: said, output: said })
      expect(model().asked(goal)[1]?.envelope.checkpoint).toEqual(said)
    })

    test('what a model says of its refusal is cut between characters, and kept with NUL', async () => {
      const it = engine()
      const goal = it.goal('Be refused')
      const start = 'the model answered 400: '
      model().script(goal, [{ status: 400, body: `\0${'x'.repeat(298 - start.length)}😀` }])
      const { id } = await it.create({ goal })
      await it.work()
      expect(await it.read(id)).toMatchObject({
        status: 'failed',
        error: { code: 'model_rejected', message: `${start}\0${'x'.repeat(298 - start.length)}` },
      })
    })

    test('a clock that is set back during a call gives no time back', async () => {
      const it = engine()
      const goal = it.goal('Turn the clock back')
      model().script(goal, () => {
        open().advance(-3_600_000)
        return { outcome: { status: 'completed' } }
      })
      const { id } = await it.create({ goal })
      await it.work()
      open().advance(3_600_000)
      expect((await it.read(id)).budgetUsage).toMatchObject({ turns: 1, durationMs: 0 })
    })

    test('what a service answers is kept with NUL and halves of surrogate pairs, and cut between characters', async () => {
      const stage = await openStage(open())
      const output = { text: 'a\0b\ud800', '\0': 1 }
      const read = await stage.begin()
      await stage.propose(read.id, { action: 'look' })
      desk.service().react({ status: 200, body: JSON.stringify(output) })
      await stage.work()
      expect(await stage.call(read.id)).toMatchObject({ status: 'succeeded', output })
      const start = 'the service answered 400: '
      const refused = await stage.begin()
      await stage.propose(refused.id, { action: 'look' })
      desk.service().react({ status: 400, body: `\0${'x'.repeat(1022 - start.length)}😀` })
      await stage.work()
      expect(await stage.call(refused.id)).toMatchObject({
        status: 'failed',
        error: `${start}\0${'x'.repeat(1022 - start.length)}`,
      })
    })

    test('an output nested too deep to be kept is a failure at once, a write too', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      desk.service().react({ status: 200, body: nested(20_000) })
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({
        status: 'failed',
        failurePhase: 'validate_output',
        error: 'the output does not fit: it is nested deeper than 1000 levels',
      })
      expect((await stage.run(run.id)).status).toBe('queued')
    })
  },
  servedParts(desk),
)

import { expect, test } from 'vitest'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'

describeOnBoth('pins', (api) => {
  test('memory#76 pin: defaults hybrid, 10; bad mode 400; list; DELETE 204, then 404', async () => {
    const ws = await api().workspace()
    const pins = `/workspaces/${ws}/recall/pins`
    const create = (body: object, agent: string | null = null): Promise<Reply> =>
      api().call('POST', pins, body, { agent })
    const plain = await create({ query: 'otters' })
    expect(plain).toMatchObject({ status: 201, body: { pin_id: expect.stringMatching(/^pin_[0-9A-Z]{26}$/) } })
    expect(plain.body).toEqual({ pin_id: expect.any(String), watermark: expect.stringMatching(/^wmk_[0-9A-Z]{26}$/) })
    const full = await create(
      { query: 'Otter', mode: 'lookup', k: 100, watermark: ' any thing ', label: 'L' },
      'agent_pins',
    )
    expect(full.body.watermark).toBe(' any thing ')
    const { body } = await api().call('GET', pins)
    expect(body).toEqual({
      pins: [
        {
          pin_id: full.body.pin_id,
          workspace_id: ws,
          query: 'Otter',
          mode: 'lookup',
          k: 100,
          watermark: ' any thing ',
          label: 'L',
          created_by: 'agent_pins',
          created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        },
        {
          pin_id: plain.body.pin_id,
          workspace_id: ws,
          query: 'otters',
          mode: 'hybrid',
          k: 10,
          watermark: plain.body.watermark,
          created_at: expect.any(String),
        },
      ],
    })
    const bad: [body: object, field: string][] = [
      [{}, 'query'],
      [{ query: '' }, 'query'],
      [{ query: 'x', mode: 'fuzzy' }, 'mode'],
      [{ query: 'x', k: 0 }, 'k'],
      [{ query: 'x', k: 101 }, 'k'],
      [{ query: 'x', k: 2.5 }, 'k'],
      [{ query: 'x', label: 'l'.repeat(201) }, 'label'],
      [{ query: 'x', watermark: 5 }, 'watermark'],
      [{ query: 'x', watermark: 'w'.repeat(201) }, 'watermark'],
      [{ query: 'x', filters: {} }, 'filters'],
    ]
    for (const [request, field] of bad) {
      expect(await create(request)).toMatchObject({
        status: 400,
        body: { error_code: 'invalid_input', details: { field } },
      })
    }
    const page = (await api().call('GET', `${pins}?limit=1`)).body
    expect(page.pins).toHaveLength(1)
    const rest = (await api().call('GET', `${pins}?limit=1&cursor=${page.next_cursor}`)).body
    expect(rest).toEqual({ pins: [body.pins[1]] })
    const pin = `${pins}/${plain.body.pin_id}`
    expect(await api().call('DELETE', pin, undefined, { agent: null })).toMatchObject({
      status: 204,
      body: undefined,
    })
    expect(await api().call('DELETE', pin)).toMatchObject({
      status: 404,
      body: { error_code: 'not_found', details: { resource: 'pin', id: plain.body.pin_id } },
    })
    expect((await api().call('GET', pins)).body.pins).toHaveLength(1)
  })
})

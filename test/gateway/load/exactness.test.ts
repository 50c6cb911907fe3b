import { expect, test } from 'vitest'
import { readBooks, readBooksOf } from '../../support/gateway-load/books.ts'
import { numbersFrom } from '../../support/gateway-load/calls.ts'
import { differences } from '../../support/gateway-load/check.ts'
import { makeCalls, type Seen } from '../../support/gateway-load/client.ts'
import { describeInPlaces } from '../../platform/support.ts'
import { startLoaded } from './support.ts'

const count = (seen: readonly Seen[], end: Seen['end']): number => seen.filter((each) => each.end === end).length

describeInPlaces('books after a load', (place) => {
  test(
    'gateway#83 gateway#82 tokens and cost equal what the provider told, then and after a stop in the middle',
    { timeout: 180_000 },
    async () => {
      const { api, provider, target, metricsToken, stop, restart } = await startLoaded(place())
      const seen = await makeCalls(target, numbersFrom(0, 400), 32)
      // The load holds what it is for: streams that break, clients that go, answers from the cache.
      expect([count(seen, 'lost'), count(seen, 'whole') > 300]).toEqual([0, true])
      expect(Math.min(count(seen, 'broken'), count(seen, 'left'))).toBeGreaterThan(5)
      const { records, views } = await readBooksOf({ url: api.url, token: api.admin }, seen.length, metricsToken)
      expect(differences(seen, records, provider)).toEqual([])
      expect(new Set(records.map(({ outcome }) => outcome))).toEqual(
        new Set(['ok', 'cached', 'error', 'client_closed']),
      )
      expect(views.analytics).toEqual(views.records)
      expect(views.metrics).toEqual(views.records)
      expect(views.records).toMatchObject(views.cost)

      let stopped: Promise<void> | undefined
      const late = await makeCalls(target, numbersFrom(400, 600), 32, ({ number, end }) => {
        if (number === 550) stopped = stop()
        return end !== 'lost'
      })
      await stopped
      expect(late.length).toBeGreaterThan(140)
      const again = await restart()
      const books = await readBooks({ url: again.url, token: again.admin })
      await again.stop()
      expect(differences([...seen, ...late], books.records, provider)).toEqual([])
      expect(books.views.analytics).toEqual(books.views.records)
      expect(books.views.records).toMatchObject(books.views.cost)
    },
  )
})

/**
 * English words that say too little to search by, as `words` of analysis.ts gives them (an apostrophe splits). `hash:default`
 * leaves them out, so the list is frozen with it.
 */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above after again against all am an and any are as at be because been before being below between both but by
  can could did do does doing don down during each either else ever few for from further had has have having he her here
  hers herself him himself his how however i if in into is it its itself just ll m may me might more most much must my
  myself no nor not now of off on once only or other our ours ourselves out over own re s same shall she should so some
  such t than that the their theirs them themselves then there these they this those through to too under until up upon
  ve very was we were what when where which while who whom whose why will with would you your yours yourself yourselves
  d didn doesn isn wasn aren couldn wouldn hasn haven hadn weren shouldn won`.split(/\s+/),
)

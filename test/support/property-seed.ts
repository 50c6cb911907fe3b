import fc from 'fast-check'

/** Properties meet the same cases in every run; `FC_SEED=$RANDOM npm test` looks at others. */
fc.configureGlobal({ seed: Number(process.env.FC_SEED ?? 1) })

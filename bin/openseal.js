#!/usr/bin/env node
require('./mem.js')

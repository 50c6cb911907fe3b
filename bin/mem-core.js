#!/usr/bin/env node
import './mem.js'

# docker build -t mem .
# docker run -p 7777:7777 -v mem:/data -e MEM_API_KEY=$(openssl rand -hex 32) mem

FROM node:24-bookworm-slim AS build
WORKDIR /app
# Nothing is compiled: the driver of SQLite for this Node comes with its native code.
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY bin bin
COPY scripts scripts
COPY src src
RUN node scripts/build.mjs && npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf node_modules/better-sqlite3 node_modules/better-sqlite3-13/deps \
  && find node_modules/better-sqlite3-13/prebuilds -type f ! -name 'linux-*' -delete

FROM node:24-bookworm-slim
ENV NODE_ENV=production MEM_ADDR=:7777 MEM_DATA_DIR=/data
RUN install -d -m 700 -o node -g node /data
COPY --from=build /app/package.json /app/
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
COPY bin /app/bin
COPY data/models.yaml /app/data/models.yaml
COPY migrations /app/migrations
COPY templates /app/templates
COPY embedded_nodes /app/embedded_nodes
USER node
# A mem.yaml in the volume is found here.
WORKDIR /data
VOLUME /data
EXPOSE 7777
ENTRYPOINT ["node", "--max-semi-space-size=32", "/app/bin/mem.js"]
CMD ["serve"]

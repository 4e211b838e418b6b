# The worker image. Agents come in a layer on top of it, or as a mounted folder.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && npm prune --omit=dev

FROM node:24-slim
# Temporal's client takes its root certificates from the system.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN mkdir /data && chown node:node /data
RUN chmod +x dist/cli/main.js && ln -s /app/dist/cli/main.js /usr/local/bin/everturn
USER node
# SIGTERM lets the worker finish what it has: see stop_grace_period in docker-compose.yml.
CMD ["everturn", "worker"]

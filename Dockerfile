# An image with Outlast and an app: `docker build -t agents .` Your own app: `--build-arg APP=path/to/app.py`.
# One container is a whole server, on a SQLite file in the volume /data; deploy/compose.yml runs many on PostgreSQL.
FROM node:22-slim AS console
WORKDIR /source/web
COPY web ./
RUN npm ci --omit=dev && npm run build

FROM python:3.13-slim AS wheel
WORKDIR /source
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
COPY --from=console /source/src/outlast/api/console ./src/outlast/api/console
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.13-slim
# What else the app needs, such as "pydantic-ai-slim[openai]".
ARG PACKAGES=""
ARG EXTRAS="postgres,s3,mcp"
ARG APP="deploy/app.py"
COPY --from=wheel /wheel /wheel
RUN pip install --no-cache-dir "$(echo /wheel/*.whl)[$EXTRAS]" $PACKAGES && rm -r /wheel
RUN useradd --uid 1000 outlast && install -d -o outlast -g outlast /app /data
USER outlast
WORKDIR /app
COPY ${APP} app.py
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=5s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz')"]
CMD ["outlast", "serve", "app.py", "--host", "0.0.0.0", "--port", "8000"]

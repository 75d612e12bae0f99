# `docker build -t fairlead .` makes an image whose command is `fairlead up`: `docker run -p 9092:9092 fairlead` serves this
# machine. For other containers: compose.yaml.
FROM python:3.12-slim AS base
COPY . /src

FROM base AS spark
RUN pip install --no-cache-dir "/src[spark]"
WORKDIR /work
ENTRYPOINT ["python"]

FROM base AS cluster
RUN pip install --no-cache-dir /src
VOLUME /data
EXPOSE 9092
ENTRYPOINT ["fairlead", "up", "--data-dir", "/data"]
CMD ["-X", "listeners=PLAINTEXT://0.0.0.0:9092", "-X", "advertised.listeners=PLAINTEXT://localhost:9092"]

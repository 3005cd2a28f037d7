// The server's shapes by short names. They are generated from its OpenAPI document: `make check-console`.
import type { components } from "./schema";

type Schemas = components["schemas"];
export type LogEvent = Schemas["EventAnswer"];
export type Session = Schemas["SessionAnswer"];
export type Task = Schemas["Task"];
export type TaskSnapshot = Schemas["TaskSnapshot"];
export type TaskRequest = Schemas["TaskRequest"];
export type Agent = Schemas["AgentAnswer"];
export type Accepted = Schemas["AcceptedAnswer"];
export type WhenBusy = NonNullable<Schemas["MessageBody"]["when_busy"]>;
export type Verdict = Schemas["Verdict"];
export type Me = Schemas["MeAnswer"];
export type Usage = Schemas["UsageReportAnswer"];
export type Key = Schemas["KeyAnswer"];
export type Connection = Schemas["ConnectionAnswer"];
export type Schedule = Schemas["Schedule"];
export type Fire = Schemas["Fire"];
export type Webhook = Schemas["WebhookAnswer"];
export type Delivery = Schemas["DeliveryAnswer"];

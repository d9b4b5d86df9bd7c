import { type TSchema, Type } from '@sinclair/typebox';

/** A member that may be missing. Clients send `null` for what they leave out. */
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Null()]));

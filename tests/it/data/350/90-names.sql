-- Names that need quotes everywhere, and renames.
CREATE SCHEMA "s90 my.schema";
CREATE SCHEMA "s90""q`t'é\x";
CREATE TABLE "s90 my.schema"."ta ble.x" ("i d" int PRIMARY KEY, "a.b" text, "c""d" text, "e'f" text, "g`h" text, "i\j" text, "ä€𝄞" text, "select" int, "UPPER" int, upper int, "_x" int, "{}" int, "%s" int, "--" int);
CREATE TABLE "s90""q`t'é\x"."q""`'\t{schema}" ("k`""'\" text PRIMARY KEY, v text DEFAULT 'x');
CREATE TABLE s90."UPPER" (id int PRIMARY KEY);
CREATE TABLE s90.upper (id int PRIMARY KEY);
CREATE TABLE s90."123456789012345678901234567890123456789012345678901234567890123" (id int PRIMARY KEY);
INSERT INTO "s90 my.schema"."ta ble.x" SELECT g, 'a', 'c', 'e', 'g', 'i', 'ä', g, g, -g, g, g, g, g FROM generate_series(1, 10) g;
INSERT INTO "s90""q`t'é\x"."q""`'\t{schema}" VALUES ('k1'), ('k2');
INSERT INTO s90."UPPER" VALUES (1); INSERT INTO s90.upper VALUES (2);
INSERT INTO s90."123456789012345678901234567890123456789012345678901234567890123" VALUES (1);
-- step: DDL on them
ALTER TABLE "s90 my.schema"."ta ble.x" ADD COLUMN "n`e'w""\ " int DEFAULT 4;
ALTER TABLE "s90 my.schema"."ta ble.x" RENAME COLUMN "select" TO "b`'a";
UPDATE "s90 my.schema"."ta ble.x" SET "b`'a" = 1000 WHERE "i d" < 5; DELETE FROM "s90 my.schema"."ta ble.x" WHERE "i d" = 6;
ALTER TABLE "s90""q`t'é\x"."q""`'\t{schema}" ALTER v TYPE varchar(10), ADD COLUMN "r`" float8 DEFAULT random();
UPDATE "s90""q`t'é\x"."q""`'\t{schema}" SET "k`""'\" = 'k3' WHERE "k`""'\" = 'k1';
ALTER TABLE "s90 my.schema"."ta ble.x" DROP COLUMN "c""d";
-- step: tables and schemas are renamed
ALTER TABLE s90."UPPER" RENAME TO "new `name`";
INSERT INTO s90."new `name`" VALUES (3);
ALTER SCHEMA "s90 my.schema" RENAME TO "s90 r.e`n'";
-- step:
INSERT INTO "s90 r.e`n'"."ta ble.x" ("i d") VALUES (100);
ALTER TABLE "s90 r.e`n'"."ta ble.x" SET SCHEMA s90;
UPDATE s90."ta ble.x" SET "_x" = 0;
BEGIN;
INSERT INTO s90."ta ble.x" ("i d") VALUES (101);
ALTER TABLE s90."ta ble.x" RENAME TO t; INSERT INTO s90.t ("i d") VALUES (102);
ALTER SCHEMA s90 RENAME TO "s90 b"; INSERT INTO "s90 b".t ("i d") VALUES (103);
COMMIT;
ALTER SCHEMA "s90 b" RENAME TO s90;
-- step: a table takes the name that another one had
ALTER TABLE s90.upper RENAME TO lower;
CREATE TABLE s90.upper (id int PRIMARY KEY, v text);
INSERT INTO s90.upper VALUES (7, 'new'); INSERT INTO s90.lower VALUES (8);
BEGIN; ALTER SCHEMA s90 RENAME TO s90_old; CREATE SCHEMA s90; CREATE TABLE s90.upper (id int PRIMARY KEY, v text, w int); INSERT INTO s90.upper VALUES (9, 'newest', 1); INSERT INTO s90_old.upper VALUES (10, 'x'); COMMIT;

-- Statements as people write them, for the benchmark of grammars: one to a block. A project is a schema of its own.
-- The SQL is that of the standard, as far as PostgreSQL, SQLite, MySQL and DuckDB mostly agree about it.

-- project shop
SELECT id, name, price FROM products WHERE price < 20.00 ORDER BY price DESC LIMIT 10;

SELECT COUNT(*) FROM orders;

SELECT DISTINCT country FROM customers WHERE country IS NOT NULL ORDER BY country;

SELECT c.name, c.email, SUM(o.total) AS spent
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.id
WHERE o.status = 'paid' AND o.created_at >= '2024-01-01'
GROUP BY c.name, c.email
HAVING SUM(o.total) > 500
ORDER BY spent DESC
LIMIT 25 OFFSET 50;

SELECT p.name, COALESCE(SUM(i.quantity), 0) AS sold
FROM products p
LEFT JOIN order_items i ON i.product_id = p.id
GROUP BY p.id, p.name
ORDER BY sold DESC, p.name ASC;

INSERT INTO customers (name, email, country) VALUES ('Ada Lovelace', 'ada@example.com', 'GB');

INSERT INTO products (sku, name, price, stock) VALUES
    ('A-100', 'Garden chair', 49.90, 12),
    ('A-101', 'Garden table', 129.00, 4),
    ('B-200', 'Parasol, 3 m', 89.50, 0),
    ('B-201', 'Parasol stand', 35.00, 7),
    ('C-300', 'O''Brien''s hammock', 75.25, 2);

UPDATE products SET price = price * 1.05, updated_at = CURRENT_TIMESTAMP WHERE category_id = 7;

UPDATE orders SET status = 'cancelled' WHERE status = 'pending' AND created_at < '2024-03-01';

DELETE FROM carts WHERE updated_at < '2023-12-31';

CREATE TABLE categories (
    id INTEGER PRIMARY KEY,
    parent_id INTEGER REFERENCES categories (id),
    name VARCHAR(80) NOT NULL,
    UNIQUE (parent_id, name)
);

CREATE TABLE order_items (
    order_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    product_id INTEGER NOT NULL,
    quantity INTEGER NOT NULL DEFAULT 1 CHECK (quantity > 0),
    unit_price DECIMAL(10, 2) NOT NULL,
    PRIMARY KEY (order_id, line),
    FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE,
    FOREIGN KEY (product_id) REFERENCES products (id)
);

CREATE INDEX orders_by_customer ON orders (customer_id, created_at DESC);

SELECT o.id,
       CASE
           WHEN o.total >= 1000 THEN 'large'
           WHEN o.total >= 100 THEN 'medium'
           ELSE 'small'
       END AS size,
       CAST(o.created_at AS DATE) AS day
FROM orders o
WHERE o.id IN (SELECT order_id FROM order_items WHERE product_id IN (4, 8, 15, 16, 23, 42));

SELECT name FROM products WHERE name LIKE 'Garden%' AND stock BETWEEN 1 AND 20 AND NOT discontinued;

-- project payroll
SELECT employee_id, last_name, first_name FROM employees WHERE department = 'R&D' ORDER BY last_name;

SELECT d.name, AVG(e.salary) AS average, MIN(e.salary), MAX(e.salary), COUNT(*) AS heads
FROM departments d INNER JOIN employees e ON e.department_id = d.id
GROUP BY d.name;

SELECT e.name, m.name AS manager FROM employees e LEFT OUTER JOIN employees m ON m.id = e.manager_id;

SELECT name, salary, RANK() OVER (PARTITION BY department_id ORDER BY salary DESC) AS place FROM employees;

SELECT month, amount,
       SUM(amount) OVER (ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
       LAG(amount, 1) OVER (ORDER BY month) AS before
FROM payments
WHERE employee_id = 1042;

WITH RECURSIVE reports AS (
    SELECT id, name, manager_id, 1 AS depth FROM employees WHERE manager_id IS NULL
    UNION ALL
    SELECT e.id, e.name, e.manager_id, r.depth + 1
    FROM employees e
    JOIN reports r ON e.manager_id = r.id
)
SELECT depth, COUNT(*) FROM reports GROUP BY depth ORDER BY depth;

WITH raises AS (
    SELECT employee_id, MAX(effective_on) AS latest FROM salary_changes GROUP BY employee_id
), stale AS (
    SELECT employee_id FROM raises WHERE latest < '2022-07-01'
)
SELECT e.name, e.salary
FROM employees e
WHERE e.id IN (SELECT employee_id FROM stale) AND e.terminated_on IS NULL;

INSERT INTO payments (employee_id, month, amount)
SELECT id, '2024-05', salary / 12 FROM employees WHERE terminated_on IS NULL;

UPDATE employees SET salary = (SELECT AVG(salary) FROM employees WHERE grade = 4) WHERE grade = 4 AND salary < 41000;

DELETE FROM timesheets WHERE employee_id NOT IN (SELECT id FROM employees);

ALTER TABLE employees ADD COLUMN office VARCHAR(40) DEFAULT 'Delft';

ALTER TABLE employees DROP COLUMN fax;

CREATE VIEW active_employees AS SELECT id, name, department_id FROM employees WHERE terminated_on IS NULL;

SELECT department_id FROM employees EXCEPT SELECT id FROM departments;

SELECT name FROM employees WHERE EXISTS (SELECT 1 FROM absences a WHERE a.employee_id = employees.id AND a.days > 10);

-- project sensors
CREATE TABLE IF NOT EXISTS readings (
    sensor_id BIGINT NOT NULL,
    taken_at TIMESTAMP NOT NULL,
    temperature DOUBLE PRECISION,
    humidity REAL,
    flags SMALLINT DEFAULT 0
);

SELECT sensor_id, MAX(taken_at) FROM readings GROUP BY sensor_id;

SELECT sensor_id, AVG(temperature) FROM readings WHERE taken_at >= '2024-02-01 00:00:00' AND taken_at < '2024-03-01 00:00:00' GROUP BY sensor_id HAVING COUNT(*) > 100;

SELECT * FROM readings WHERE temperature > 1.5e2 OR temperature < -4.0e1 OR humidity IS NULL;

INSERT INTO readings VALUES (17, '2024-02-03 04:05:06', 21.375, 0.44, 0), (17, '2024-02-03 04:06:06', 21.5, 0.43, 0), (18, '2024-02-03 04:05:09', NULL, NULL, 3);

SELECT a.sensor_id, a.taken_at, a.temperature - b.temperature AS difference
FROM readings a
JOIN readings b ON a.sensor_id = b.sensor_id AND a.taken_at > b.taken_at
WHERE ABS(a.temperature - b.temperature) > 2 * (a.humidity + b.humidity) / 3;

SELECT s.label, r.temperature FROM sensors s CROSS JOIN readings r WHERE s.id = r.sensor_id AND s.building IN ('north', 'south wing');

SELECT ROUND(AVG(temperature), 1) AS mean, COUNT(DISTINCT sensor_id) AS sensors FROM readings WHERE flags = 0;

DROP TABLE IF EXISTS readings_2019;

DROP INDEX readings_by_time;

CREATE UNIQUE INDEX readings_by_time ON readings (sensor_id, taken_at);

UPDATE sensors SET calibrated = TRUE, offset_k = -0.25 WHERE id = 17;

SELECT hour, CASE WHEN kind = 't' THEN 'temperature' WHEN kind = 'h' THEN 'humidity' END AS what, value FROM hourly ORDER BY hour, what LIMIT 48;

WITH daily AS (
    SELECT sensor_id, CAST(taken_at AS DATE) AS day, AVG(temperature) AS mean
    FROM readings
    GROUP BY sensor_id, CAST(taken_at AS DATE)
)
SELECT sensor_id, day, mean, mean - AVG(mean) OVER (PARTITION BY sensor_id ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS deviation
FROM daily
ORDER BY sensor_id, day;

-- project library
SELECT title, year FROM books WHERE author = 'Le Guin, Ursula K.' AND year BETWEEN 1968 AND 1974;

SELECT b.title, COUNT(l.id) AS loans FROM books b LEFT JOIN loans l ON l.book_id = b.id AND l.returned_on IS NOT NULL GROUP BY b.title ORDER BY loans DESC LIMIT 5;

SELECT m.name, b.title, l.due_on FROM loans l JOIN members m ON m.id = l.member_id JOIN books b ON b.id = l.book_id WHERE l.returned_on IS NULL AND l.due_on < CURRENT_DATE;

SELECT title FROM books WHERE (language = 'de' OR language = 'nl') AND (year > 2000 AND (copies > 1 OR reserved = 0));

SELECT UPPER(SUBSTRING(title, 1, 1)) AS letter, COUNT(*) FROM books GROUP BY UPPER(SUBSTRING(title, 1, 1)) ORDER BY 1;

INSERT INTO loans (member_id, book_id, due_on) VALUES (?, ?, ?);

INSERT INTO tags (book_id, tag) SELECT id, 'classic' FROM books WHERE year < 1950 AND id NOT IN (SELECT book_id FROM tags WHERE tag = 'classic');

UPDATE members SET name = TRIM(name), email = LOWER(email) WHERE email <> LOWER(email);

DELETE FROM reservations WHERE member_id = 311 AND book_id = 90210;

CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, joined_on DATE NOT NULL, CHECK (LENGTH(name) > 1));

SELECT 'book' AS kind, title AS name FROM books UNION SELECT 'film', title FROM films UNION ALL SELECT 'map', label FROM maps ORDER BY name;

SELECT author, year, title, ROW_NUMBER() OVER (PARTITION BY author ORDER BY year, title) AS nth FROM books;

-- project billing
SELECT i.number, i.issued_on, SUM(l.quantity * l.unit_price) AS net, SUM(l.quantity * l.unit_price * (1 + l.vat / 100.0)) AS gross
FROM invoices i
JOIN invoice_lines l ON l.invoice_id = i.id
WHERE i.issued_on BETWEEN '2023-01-01' AND '2023-12-31'
GROUP BY i.number, i.issued_on
ORDER BY i.number;

SELECT customer_id, SUM(CASE WHEN paid_on IS NULL THEN amount ELSE 0 END) AS open_amount, SUM(CASE WHEN paid_on IS NOT NULL THEN amount ELSE 0 END) AS paid_amount FROM invoices GROUP BY customer_id;

SELECT t.id, t.amount FROM (SELECT id, amount, customer_id FROM invoices WHERE amount > 10000) AS t WHERE t.customer_id = 5 ORDER BY t.amount DESC;

SELECT x.customer_id, x.total FROM (
    SELECT customer_id, SUM(amount) AS total FROM (
        SELECT customer_id, amount FROM invoices WHERE currency = 'EUR'
        UNION ALL
        SELECT customer_id, amount * 0.92 FROM invoices WHERE currency = 'USD'
    ) AS y
    GROUP BY customer_id
) AS x
WHERE x.total > (SELECT AVG(limit_amount) FROM credit_limits WHERE valid_until >= '2024-01-01')
ORDER BY x.total DESC;

UPDATE invoices SET paid_on = '2024-04-02', reference = 'SEPA 2024-0402/117' WHERE id = 88117 AND paid_on IS NULL;

BEGIN;

COMMIT;

ROLLBACK;

SELECT -(-3) + 4 * (2 - 1) % 5, 'it''s', NULL, TRUE, FALSE, 0.5, .5e-3, "quoted column", t."from" FROM t;

WITH lines AS (
    SELECT invoice_id, product_code, quantity, unit_price, vat FROM invoice_lines WHERE quantity > 0
), totals AS (
    SELECT invoice_id, SUM(quantity * unit_price) AS net, COUNT(*) AS count_of_lines FROM lines GROUP BY invoice_id
), ranked AS (
    SELECT t.invoice_id, t.net, NTILE(4) OVER (ORDER BY t.net DESC) AS quarter FROM totals t WHERE t.count_of_lines > 1
)
SELECT c.name, r.quarter, COUNT(*) AS invoices, SUM(r.net) AS net, MAX(r.net) - MIN(r.net) AS spread
FROM ranked r
JOIN invoices i ON i.id = r.invoice_id
JOIN customers c ON c.id = i.customer_id
LEFT JOIN dunning d ON d.invoice_id = i.id AND d.level >= 2
WHERE d.id IS NULL AND (c.country = 'NL' OR c.country = 'BE' OR c.country IN ('DE', 'AT', 'CH')) AND c.name NOT LIKE '%test%'
GROUP BY c.name, r.quarter
HAVING COUNT(*) >= 3
ORDER BY r.quarter ASC, net DESC
LIMIT 100;
